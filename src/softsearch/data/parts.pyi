from .scripts import letters_of as letters_of
from .sentencepiece_file import kind_of as kind_of
from .sentencepiece_file import processor_of as processor_of
from .tokenizer_files import list_model as list_model
