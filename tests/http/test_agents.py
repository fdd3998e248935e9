"""Agent frameworks and what they send: pydantic-ai with each of its ways to a structured answer, calls of tools in turns, and streams.

The demo model calls a tool only when it has to; a call that is required is always valid, and so is a structured answer.
"""

import asyncio
from typing import Literal, Optional

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from gateway import with_template
from test_tools import THINKS


class Place(BaseModel):
    street: str = Field(max_length=8)
    number: Optional[int] = Field(default=None, ge=0, le=99)


class Answer(BaseModel):
    """What is asked for."""
    kind: Literal["house", "flat"]
    place: Place


FORMS = {"native": lambda: NativeOutput(Answer, strict=True), "native_open": lambda: NativeOutput(Answer),
         "tool": lambda: ToolOutput(Answer, name="final"), "tool_strict": lambda: ToolOutput(Answer, strict=True)}


def model_of(gateway):
    return OpenAIChatModel("tgi", provider=OpenAIProvider(base_url=gateway.url + "/v1", api_key="-"))


def agent_of(gateway, **more):
    settings = {"max_tokens": 250, "temperature": 1.0, "seed": 3} | more.pop("model_settings", {})
    return Agent(model_of(gateway), model_settings=settings, retries=0, **more)


def check(answer):
    assert isinstance(answer, Answer) and answer.kind in ("house", "flat") and len(answer.place.street) <= 8


@pytest.mark.parametrize("form", FORMS)
def test_a_structured_answer(gateway, form):
    for seed in range(3):
        run = agent_of(gateway, output_type=FORMS[form](), model_settings={"seed": seed}).run_sync("Where?")
        check(run.output)
        assert run.usage.output_tokens > 0


@pytest.mark.parametrize("form", FORMS)
def test_a_streamed_structured_answer(gateway, form):
    async def ask():
        async with agent_of(gateway, output_type=FORMS[form]()).run_stream("Where?") as stream:
            async for _ in stream.stream_output(debounce_by=None):
                pass
            return await stream.get_output()

    check(asyncio.run(ask()))


def test_a_prompted_answer(gateway):
    """The form is told in words; the model is a toy, so it is enforced too."""
    check(agent_of(gateway, output_type=PromptedOutput(Answer), model_settings={"extra_body": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": Answer.model_json_schema()}}}})
        .run_sync("Where?").output)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_tools_are_called_and_their_results_read(gateway, stream):
    called = []
    agent = agent_of(gateway, output_type=ToolOutput(Answer, name="final"), model_settings={"parallel_tool_calls": False})

    @agent.tool_plain
    def look_up(name: Literal["a", "b"], many: Optional[int] = None) -> str:
        """Looks a place up."""
        called.append(name)
        return f"{name} is a house"

    async def ask(seed):
        settings = {"seed": seed}
        if not stream:
            return (await agent.run("Where?", model_settings=settings)).all_messages()
        async with agent.run_stream("Where?", model_settings=settings) as answer:
            check(await answer.get_output())
            return answer.all_messages()

    for seed in range(12):
        called.clear()
        try:
            messages = asyncio.run(ask(seed))
        except ModelHTTPError as error:  # the toy has looked up until its context was full
            assert "must be <= 1024" in str(error)
            continue
        parts = [part for message in messages for part in message.parts]
        ids = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
        assert ids == {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
        if called:
            break
    assert called and set(called) <= {"a", "b"}


def test_reasoning_is_a_part_of_its_own(pair, tmp_path):
    gateway = pair(model=with_template(tmp_path, THINKS)).gateway
    agent = agent_of(gateway, output_type=NativeOutput(Answer), model_settings={"extra_body": {"thinking_token_budget": 9}})
    run = agent.run_sync("Where?")
    check(run.output)
    thoughts = [part for message in run.all_messages() if isinstance(message, ModelResponse)
                for part in message.parts if isinstance(part, ThinkingPart)]
    assert len(thoughts) == 1 and thoughts[0].content

    async def stream():
        async with agent.run_stream("Where?") as answer:
            check(await answer.get_output())
            return [part for part in answer.response.parts if isinstance(part, ThinkingPart)]

    assert [part.content for part in asyncio.run(stream())] == [thoughts[0].content]
    # A history with reasoning is taken, as the client sends it.
    check(agent.run_sync("And then?", message_history=run.all_messages()).output)
