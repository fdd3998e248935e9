// One request to /v1/chat/completions, streamed into a message.
import {ApiError, post} from "./api.js";
import {pathTo} from "./conversation.js";
import {eventsOf} from "./event_stream.js";
import {requestFields} from "./settings.js";

/** The conversation up to `node`, in the route's form. */
export function messagesOf(conversation, node) {
  const messages = [];
  if (conversation.settings.system?.trim()) messages.push({role: "system", content: conversation.settings.system});
  for (const {role, content, calls, callId} of node ? pathTo(conversation, node) : []) {
    if (role === "tool") {
      messages.push({role, tool_call_id: callId, content});
    } else if (calls?.length) {
      messages.push({role, content: content || null,
        tool_calls: calls.map(call => ({id: call.id, type: "function", function: {name: call.name, arguments: call.arguments}}))});
    } else if (role === "user" || content) {  // an answer that never came is left out
      messages.push({role, content});
    }
  }
  return messages;
}

function addCalls(node, deltas) {
  node.calls ??= [];
  for (const {index, id, function: part} of deltas) {
    const call = node.calls[index] ??= {id: "", name: "", arguments: ""};
    if (id) call.id = id;
    if (part?.name) call.name = part.name;
    call.arguments += part?.arguments ?? "";
  }
}

/**
 * Asks for the answer to `messages` and adds it to `node` while it comes; `onpart` after each part. Throws what fetch and the server
 * throw; what came until then stays. `tokens` collects the probabilities of the tokens, which are not kept with the conversation.
 */
export async function streamAnswer(conversation, node, messages, {signal, onpart, tokens}) {
  const began = performance.now();
  const body = {...requestFields(conversation.settings), messages, stream: true, stream_options: {include_usage: true}};
  const response = await post("v1/chat/completions", body, {signal});
  let first = 0;
  let last = 0;
  for await (const data of eventsOf(response)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(chunk.error.http_status_code ?? 500, chunk.error.message ?? String(chunk.error));
    if (chunk.model) node.model = chunk.model;
    const choice = chunk.choices?.[0];
    const delta = choice?.delta ?? {};
    if (delta.content || delta.reasoning_content || delta.tool_calls?.length) {
      last = performance.now();
      first ||= last;
    }
    if (delta.reasoning_content) node.reasoning = (node.reasoning ?? "") + delta.reasoning_content;
    if (delta.content) node.content += delta.content;
    if (delta.tool_calls) addCalls(node, delta.tool_calls);
    if (choice?.logprobs?.content) tokens.push(...choice.logprobs.content);
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.usage) addUsage(node, chunk.usage, {began, first, last});
    onpart();
  }
}

function addUsage(node, usage, {began, first, last}) {
  const seconds = (last - first) / 1000;
  node.stats = {
    prompt_tokens: usage.prompt_tokens,
    cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    completion_tokens: usage.completion_tokens,
    reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    first_ms: first ? Math.round(first - began) : 0,
    // Of those after the first, which waited for the prompt.
    tokens_per_s: seconds > 0.002 && usage.completion_tokens > 1 ? (usage.completion_tokens - 1) / seconds : 0,
  };
}
