"""Tokenizers of GGUF files in llama.cpp, as the wheel of xllamacpp has it (made with 2026.10.11549).

The wheel's Python interface has no tokenizers; its library exports llama.cpp's C functions.
"""
import ctypes

import xllamacpp.xllamacpp

LIBRARY = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
WORDS = 10       # of llama_model_params, 8 bytes each
VOCAB_ONLY = 9   # the word whose first byte is vocab_only


class ModelParams(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * WORDS)]


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def be_silent(_level, _text, _data):
    pass


def declare(name, result, *arguments):
    function = getattr(LIBRARY, name)
    function.restype = result
    function.argtypes = arguments
    return function


declare("llama_log_set", None, ctypes.c_void_p, ctypes.c_void_p)(ctypes.cast(be_silent, ctypes.c_void_p), None)
default_params = declare("llama_model_default_params", ModelParams)
load_model = declare("llama_model_load_from_file", ctypes.c_void_p, ctypes.c_char_p, ModelParams)
vocab_of = declare("llama_model_get_vocab", ctypes.c_void_p, ctypes.c_void_p)
free_model = declare("llama_model_free", None, ctypes.c_void_p)
num_tokens = declare("llama_vocab_n_tokens", ctypes.c_int32, ctypes.c_void_p)
is_eog = declare("llama_vocab_is_eog", ctypes.c_bool, ctypes.c_void_p, ctypes.c_int32)
adds_bos = declare("llama_vocab_get_add_bos", ctypes.c_bool, ctypes.c_void_p)
tokenize = declare("llama_tokenize", ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                   ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool, ctypes.c_bool)


class LlamaVocab:
    def __init__(self, path):
        params = default_params()
        params.words[VOCAB_ONLY] |= 1
        self.model = load_model(str(path).encode(), params)
        if not self.model:
            raise ValueError(f"llama.cpp refuses {path}")
        self.vocab = vocab_of(self.model)

    def __del__(self):
        if self.model:
            free_model(self.model)

    def encode(self, text):
        """With the tokens around it, and special tokens where the text has theirs."""
        data = text.encode()
        room = 2 * len(data) + 16
        ids = (ctypes.c_int32 * room)()
        count = tokenize(self.vocab, data, len(data), ids, room, True, True)
        assert count >= 0
        return list(ids[:count])

    def end_ids(self):
        return [id for id in range(num_tokens(self.vocab)) if is_eog(self.vocab, id)]

    def adds_bos(self):
        return adds_bos(self.vocab)
