"""The engines of scripts/bench/bench_peers, one module each.

A module has
    NAME                     as the table calls it
    PACKAGES                 whose versions are printed
    PRECISIONS               precision -> what it is called there; one that is absent is not measured
    prepare(checkpoint, folder, precision, settings)
                             makes the files the engine loads, in the new `folder`; None when it loads the checkpoint itself
    Runner(path, shape, precision, settings)
                             a loaded model, with
        weight_bytes         read by one step of decoding: all matrices, the embedding table only when it is also the head
        about                a few words on how it runs
        prefill(prompt)      seconds from the ids of one prompt to its first token
        decode(prompts, num_new_tokens)
                             tokens per second of all streams together, after each has its first token
        close()
and may have
    advice(code)             what to do when its process ended with this code; "" when nothing is known
Their packages are imported inside the functions: a peer that is not installed still has its place in the table.
"""

from . import llama_cpp_peer, openvino_peer, tgi_peer, torch_peer, vllm_peer

PEERS = {module.NAME: module for module in (tgi_peer, vllm_peer, llama_cpp_peer, openvino_peer, torch_peer)}
