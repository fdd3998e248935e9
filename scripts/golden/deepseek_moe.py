"""The first DeepSeek MoE, which transformers does not have, from Llama's parts: an oracle under its own model_type.

Experts are chosen by a softmax over all of them; `norm_topk_prob` divides the weights by their sum. Layers from
first_k_dense_replace on whose number is a multiple of moe_layer_freq have experts, the others Llama's MLP.
"""

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP


class DeepseekConfig(LlamaConfig):
    model_type = "deepseek"


class Mlp(LlamaMLP):
    def __init__(self, config, intermediate_size):
        super().__init__(LlamaConfig(hidden_size=config.hidden_size, intermediate_size=intermediate_size, hidden_act=config.hidden_act,
                                     num_attention_heads=1))


class Router(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(config.n_routed_experts, config.hidden_size))


class Moe(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.top_k = config.num_experts_per_tok
        self.normalises = config.norm_topk_prob and self.top_k > 1
        self.experts = nn.ModuleList(Mlp(config, config.moe_intermediate_size) for _ in range(config.n_routed_experts))
        self.gate = Router(config)
        shared = config.n_shared_experts
        self.shared_experts = Mlp(config, config.moe_intermediate_size * shared) if shared else None

    def forward(self, x):
        rows = x.view(-1, x.shape[-1])
        scores = nn.functional.linear(rows.float(), self.gate.weight.float()).softmax(-1)
        weights, chosen = scores.topk(self.top_k, dim=-1)
        if self.normalises:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        out = torch.zeros_like(rows)
        for i, row in enumerate(rows):
            for weight, expert in zip(weights[i], chosen[i]):
                out[i] += weight.to(row.dtype) * self.experts[expert](row)
        if self.shared_experts is not None:
            out = out + self.shared_experts(rows)
        return out.view(x.shape)


class DeepseekForCausalLM(LlamaForCausalLM):
    config_class = DeepseekConfig

    def __init__(self, config):
        super().__init__(config)
        for i, layer in enumerate(self.model.layers):
            if config.n_routed_experts and i >= config.first_k_dense_replace and i % config.moe_layer_freq == 0:
                layer.mlp = Moe(config)


AutoConfig.register("deepseek", DeepseekConfig)
AutoModelForCausalLM.register(DeepseekConfig, DeepseekForCausalLM)
