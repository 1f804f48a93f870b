"""Suggestions for words that do not exist: what other toolkits' words mean here, and similar words.

Every surface reads these tables: config keys, flags, fields of requests, keywords in Python, commands and choices.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_SIMILAR, _SAME = 0.75, 0.85  # least similarity to a name of ours, and to another toolkit's word
_MOST, _LONGEST = 3, 60  # names in a suggestion; characters of a word that are compared
_KEY = re.compile(r"write ([\w.]+)=")


def _plain(word: str) -> str:
    return word.lstrip("-").replace("-", "_").lower()


def _by_word(table: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for meaning, words in table.items():
        for word in words.split():
            found.setdefault(_plain(word), []).append(meaning)
    return found


# Our word -> other toolkits' words and likely guesses. Ours is a flag, a field, a keyword, the end of a config key, or
# advice: "write KEY=VALUE" is for commands with KEY or its section. Of several meanings, those that exist are shown.
OPTIONS = _by_word(
    {
        # data
        "write data.train='[FILE.en,FILE.de]'; data.src_lang and data.tgt_lang name languages": (
            "src tgt trg source target from to src_train tgt_train train_src train_tgt trainpref src_file tgt_file"
        ),
        "write data.train='[FILE.en,FILE.de]'": "train train_file train_path data_path dataset corpus",
        "write data.src_lang=CODE data.tgt_lang=CODE": (
            "src_lang source_lang source_language tgt_lang trg_lang target_lang target_language slang tlang"
        ),
        "write test='[FILE.en,FILE.de]'": "src tgt source target input text test_file testpref test_path test_set",
        "src": "from source src_lang source_lang source_language from_lang from_code",
        "tgt": "to target tgt_lang trg_lang target_lang target_language to_lang to_code trg",
        "src_lang": "from src source source_lang source_language from_lang from_code",
        "tgt_lang": "to tgt trg target trg_lang target_lang target_language to_lang to_code",
        "source": "from src src_lang source_lang source_language from_lang sl",
        "target": "to tgt trg tgt_lang trg_lang target_lang target_language to_lang tl forced_bos_token",
        "write data.val='[FILE.en,FILE.de]'": "val valid dev validation val_file dev_path validpref valid_file",
        "val": "valid dev validation val_file dev_path",
        "tokenizer.vocab_size": "vocab vocab_size bpe_size voc_limit num_merges bpe_codes vocabulary_size",
        "tokenizer": "segmentation subword level",
        "write tokenizer=word tokenizer.vocabulary=FILE": "voc_file vocab_file vocabulary",
        "write tokenizer.model=FILE": "src_subword_model tgt_subword_model sentencepiece_model transforms",
        "write tokenizer=pretokenised": "remove_bpe post_process",
        "cache_dir": "data_dir",
        "batching.tokens": "batch_size bs max_tokens train_batch_size per_device_train_batch_size mini_batch",
        "batch_tokens": "batch_size max_batch_size max_tokens",
        "batching.max_length": "max_seq_length max_source_length max_sent_length max_source_positions",
        "batching.num_workers": "workers num_workers dataloader_num_workers",
        "processes": "workers num_workers jobs",
        # model
        "model": "arch architecture model_type network encoder_type",
        "write model=rnnsearch model/attention=NAME": "global_attention attention_type",
        "write model=luong2015 model.decoder.input_feeding=true": "input_feed input_feeding",
        "write model=pointer_generator": "copy_attn copy_attention",
        "embeddings.dim": "d_model emb_dim embedding_dim embed_dim word_vec_size encoder_embed_dim hidden_size",
        "hidden_dim": "hidden_size hidden hidden_units rnn_size",
        "num_layers": "layers n_layers depth enc_layers encoder_layers dec_layers decoder_layers",
        "num_heads": "heads n_heads nhead attention_heads encoder_attention_heads",
        "d_ff": "ff_size ffn_dim dim_feedforward transformer_ff encoder_ffn_embed_dim",
        "embeddings.tie": "share_all_embeddings share_embeddings tied_embeddings tie_word_embeddings share_vocab",
        "write adapter=lora": "lora peft adapters use_lora",
        "write adapter=lora adapter.rank=N": "lora.r lora_r lora_rank lora.rank peft.r",
        "write adapter=lora adapter.alpha=N": "lora_alpha lora.alpha lora.lora_alpha",
        "write adapter=lora adapter.dropout=X": "lora_dropout lora.dropout",
        "write adapter=lora adapter.targets='[NAME,NAME]'": "target_modules lora.target_modules lora.targets",
        # training
        "lr": "learning_rate max_lr",
        "optimizer": "optim opt",
        "scheduler": "lr_scheduler schedule lr_scheduler_type decay_method scheduling",
        "scheduler.warmup_steps": "warmup warmup_updates num_warmup_steps",
        "write scheduler=plateau scheduler.factor=X": "decrease_factor lr_decay",
        "write callbacks=ema callbacks.ema.decay=X": "average_decay ema_decay exponential_smoothing",
        "max_epochs": "epochs num_epochs num_train_epochs n_epochs max_epoch",
        "max_steps": "steps train_steps num_steps max_update max_updates updates",
        "trainer.max_time": "max_time time_limit hours max_hours",
        "devices": "gpus num_gpus n_gpus ngpus world_size",
        "write trainer=gpu": "cuda use_cuda gpu device=cuda device=gpu accelerator=gpu",
        "write trainer=cpu": "cpu no_cuda use_cpu cuda=false use_cuda=false gpu=false gpus=false num_gpus=false "
        "device=cpu accelerator=cpu",
        "write trainer=cpu or trainer=gpu": "device accelerator",
        "trainer": "strategy",
        "write trainer.precision=16-mixed": "fp16 half amp",
        "write trainer.precision=bf16-mixed": "bf16 bfloat16",
        "write trainer.precision=32-true": "fp16=false half=false amp=false bf16=false",
        "loss": "criterion loss_function",
        "loss.smoothing": "label_smoothing smoothing",
        "gradient_clip_val": "grad_clip clip_norm max_grad_norm gradient_clip",
        "accumulate_grad_batches": "grad_accum gradient_accumulation_steps update_freq accum_count",
        "val_check_interval": "eval_steps valid_steps val_every validation_freq validate_interval",
        "log_every_n_steps": "logging_steps log_interval report_every",
        "callbacks.early_stopping.patience": "patience early_stopping early_stop",
        "write callbacks.early_stopping=null": "early_stopping=false early_stop=false",
        "callbacks.last.keep": "keep_checkpoint save_total_limit keep_last_epochs",
        "seed": "random_seed manual_seed",
        "metric": "metrics eval_metric eval_metrics",
        "monitor": "metric_for_best_model best_checkpoint_metric early_stopping_metric",
        "logger": "logging report_to loggers wandb tensorboard many_loggers",
        "name": "tags run_name exp_name experiment_name project",
        "write resume=auto, or resume=RUN": "resume_from_checkpoint resume_from restore_file continue",
        "write init=RUN": (
            "ckpt_path checkpoint checkpoint_path model_path load pretrained load_model finetune_from_model train_from "
            "model_name_or_path"
        ),
        # checkpoints, folders and exports
        "ckpt": "ckpt_path checkpoint checkpoint_path model_path load run runs model_name_or_path ckpts",
        "out": "output_dir out_dir save_dir output output_path output_file export_dir o",
        "write hydra.run.dir=FOLDER": "output_dir out_dir save_dir model_dir logdir log_dir output",
        "write precision=int8": "quantize quantise quantization int8",
        "write precision=fp16": "fp16 half float16",
        "format": "onnx format_type",
        # searches, at every surface
        "beam": "num_beams beam_size beams beam_width",
        "n_best": "num_return_sequences nbest num_hypotheses num_alternatives",
        "alternatives": "n_best num_return_sequences nbest num_hypotheses",
        "max_length": "max_new_tokens max_len max_decoding_length max_output_length max_tgt_len",
        "min_length": "min_new_tokens min_len min_decoding_length",
        "length_penalty": "lenpen alpha beam_alpha",
        "no_repeat_ngram": "no_repeat_ngram_size block_ngram_repeat ngram_blocking",
        "temperature": "sampling_temperature temp",
        "top_k": "sampling_topk topk random_sampling_topk",
        "top_p": "sampling_topp topp nucleus random_sampling_topp",
        "groups": "num_beam_groups beam_groups",
        "diversity": "diversity_penalty diverse_beam_strength",
        "search": "do_sample strategy decoding_strategy generation_strategy sampling",
        "banned": "bad_words suppress_sequences ban bad_words_ids",
        "prefix": "target_prefix tgt_prefix prefix_size",
        "prefixes": "prefix target_prefix tgt_prefix",
        "replace_unknown": "replace_unk replace_unknowns unk_replace",
        "alignments": "attention report_align return_attention with_align print_alignment",
        "attention": "heatmap heatmaps plot_attention attention_plot",
        "heatmaps": "heatmap plot_attention attention_plot attention",
        "glossary": "terms terminology glossary_id dictionary phrase_table",
        "keep": "no_translate do_not_translate protect placeholders keep_usual",
        "text": "q input sentence sentences texts inputs query",
        "q": "text input sentence sentences texts",
        "lm": "language_model",
        # the runtime's commands and the server
        "provider": "device gpu cuda use_gpu gpus execution_provider providers",
        "threads": "num_threads inter_threads intra_threads workers jobs num_workers cpu_threads",
        "input": "file text in source_file i src_file",
        "markup": "html xml tag_handling",
        "host": "address bind listen ip",
        "cors": "origin allow_origin cors_origin",
        "api_keys": "key keys token auth",
        "deadline": "timeout request_timeout",
    }
)
# Our command -> others' commands.
COMMANDS = _by_word(
    {
        "translate": "generate predict infer inference decode interactive translator pipeline run trans",
        "prepare": "preprocess binarize binarise build_vocab build-vocab tokenize preprocessing prep",
        "train": "fit finetune fine-tune learn tune-model training pretrain",
        "evaluate": "eval test validate bleu sacrebleu evaluation metrics",
        "serve": "server api start rest http",
        "export": "convert-onnx onnx quantize optimize release deploy",
        "import": "convert load download converter from-hf",
        "average": "avg average_checkpoints average-checkpoints swa",
        "bench": "benchmark speed profile perf",
        "compare": "diff table tabulate",
        "doctor": "info env check status version",
        "new": "init create scaffold template",
        "plugins": "extensions list",
        "cache": "clean clear",
        "sweep": "search hpo optuna hyperopt",
        "verify": "check-bundle validate-bundle",
        "count": "ngram lm",
        "type softsearch train with the options of the run, hydra.run.dir=RUN and resume=auto": "resume restart",
    }
)
# Our choice of a group or a flag, or a sentence about it -> others' choices.
CHOICES = _by_word(
    {
        "transformer_tiny": "transformer",
        "transformer_base": "transformer vaswani2017 marian transformer_wmt_en_de transformer_iwslt_de_en",
        "transformer_big": "transformer vaswani2017",
        "softsearch import FOLDER --out RUN reads the weights of a MarianMT or M2M-100; then write init=RUN": (
            "marianmt opus opus-mt m2m m2m100 m2m_100 nllb small100"
        ),
        **dict.fromkeys(("rnnsearch", "nematus"), "bahdanau attention seq2seq rnn_attention brnn recurrent"),
        "luong2015": "luong lstm_attention",
        **dict.fromkeys(("bpe", "unigram"), "sentencepiece spm subword wordpiece subword-nmt"),
        "word": "words whitespace space",
        "char": "chars character characters bytes byte",
        "inverse_sqrt": "noam warmup inverse_square_root inv_sqrt",
        "linear_decay": "linear polynomial",
        "constant": "none null fixed",
        "plateau": "reduce_on_plateau reducelronplateau",
        "cross_entropy": "ce nll label_smoothing crossentropy label_smoothed_cross_entropy",
        "bleu": "sacrebleu bleu4",
        "chrfpp": "chrf++ chrf2++",
        "exact_match": "accuracy acc",
        "sample": "sampling top_k top_p nucleus topk random multinomial",
        "beam": "beam_search beamsearch",
        "greedy": "argmax greedy_search",
        "gpu": "cuda mps single_gpu",
        "cuda": "gpu nvidia",
        "cpu": "none",
        "log_probs": "mean geometric logits log_prob",
        "probs": "arithmetic linear probabilities",
        "table": "csv tsv json jsonl parquet tmx",
        "parallel": "text txt files bitext moses",
        "huggingface": "hf hub datasets",
        "tensorboard": "tb",
        "int8": "8bit quantized q8",
        "fp16": "float16 half 16",
        "float32": "fp32 32 full",
        "ctranslate2": "ct2",
        "argos": "libretranslate",
        "bundle": "onnx",
        "softsearch has no neural metric; examples/neural_metric shows how to add one": "comet bleurt bertscore",
    }
)
# ISO 639-1 and 639-3 codes of a language -> its names.
LANGUAGES = _by_word(
    {
        "ar ara arb": "arabic",
        "bg bul": "bulgarian",
        "bn ben": "bengali bangla",
        "ca cat": "catalan",
        "cs ces": "czech cze",
        "da dan": "danish",
        "de deu": "german deutsch ger",
        "el ell": "greek gre",
        "en eng": "english",
        "es spa": "spanish español castilian",
        "et est": "estonian",
        "fa fas pes": "persian farsi per",
        "fi fin": "finnish",
        "fr fra": "french français fre",
        "he heb": "hebrew",
        "hi hin": "hindi",
        "hr hrv": "croatian",
        "hu hun": "hungarian",
        "id ind": "indonesian",
        "it ita": "italian italiano",
        "ja jpn": "japanese jp",
        "ko kor": "korean kr",
        "lt lit": "lithuanian",
        "lv lav lvs": "latvian",
        "ms msa zsm": "malay",
        "nb nob no nor": "norwegian",
        "nl nld": "dutch flemish dut",
        "pl pol": "polish",
        "pt por": "portuguese português",
        "ro ron": "romanian rum",
        "ru rus": "russian",
        "sk slk": "slovak slo",
        "sl slv": "slovenian slovene",
        "sr srp": "serbian",
        "sv swe": "swedish",
        "sw swa swh": "swahili",
        "ta tam": "tamil",
        "th tha": "thai",
        "tr tur": "turkish",
        "uk ukr": "ukrainian ua",
        "ur urd": "urdu",
        "vi vie": "vietnamese vn",
        "zh zho cmn": "chinese mandarin chi cn",
    }
)


def did_you_mean(word: str, names: Iterable[str], others: Mapping[str, list[str]] | None = None) -> str:
    """Returns the end of a message about a word that does not exist, such as "did you mean 'beam'?".

    Args:
        word: as typed, with or without dashes.
        names: the words that exist: flags, fields, commands, choices, or config keys, whose last parts are enough.
        others: another toolkit's word -> what it may mean here; by default those for options.

    Returns:
        "" if no name is similar enough.
    """
    ours = _ends(names)
    theirs = _existing(OPTIONS if others is None else others, ours)
    meant = ours | theirs
    word = _plain(word)[:_LONGEST]
    parent, _, last = word.rpartition(".")
    typed = (word, last, *similar(word, ours), *get_close_matches(last, meant, 1, _SAME))
    found = next((meant[form] for form in typed if form in meant), [])
    if not found or " " in found[0]:
        return found[0] if found else ""
    inside = [name for name in found if parent and name.startswith(f"{parent}.")]
    if parent and not inside and len(found) > 1 and last not in theirs:  # data.path means neither callbacks nor loggers
        return ""
    found = inside or found
    *first, one = [name if name[0] == "-" else repr(name) for name in found if " " not in name][:_MOST]
    return f"did you mean {', '.join(first)}{' or ' * bool(first)}{one}?"


def similar(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Returns the names that are most similar to a word, best first, at most ``most``."""
    return get_close_matches(word, names, most, _SIMILAR)


def _ends(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns what may be typed for names: themselves, or the last parts of keys; those with the fewest parts win."""
    ends: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (name.count("."), name)):
        parts = _plain(name).split(".")
        for end in (".".join(parts[start:]) for start in range(len(parts))):
            same = ends.setdefault(end, [])
            if not same or same[0].count(".") == name.count("."):
                same.append(name)
    return ends


def _existing(others: Mapping[str, list[str]], ours: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Returns the meanings of other toolkits' words that exist: names, or advice."""
    sections = {name.partition(".")[0] for name in ours if "." in name}

    def existing(meaning: str) -> list[str]:
        key = _KEY.match(meaning)
        is_advice = " " in meaning and (key is None or key[1] in ours or key[1].partition(".")[0] in sections)
        return [meaning] if is_advice else ours.get(meaning, [])

    found = {word: [name for meaning in meanings for name in existing(meaning)] for word, meanings in others.items()}
    return {word: [*dict.fromkeys(names)] for word, names in found.items() if names}
