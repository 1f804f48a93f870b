from .file_kinds import other_kind as other_kind
from .languages import languages_of as languages_of
from .languages import nearest_language as nearest_language
from .plain_values import parse as parse
from .plain_values import read_json as read_json
from .sentence_tags import SentenceTags as SentenceTags
from .sentence_tags import Tags as Tags
from .word_links import word_starts as word_starts
