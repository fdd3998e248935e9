"""Frameworks of agents as they are used: of each a call of a tool, a structured answer, and a stream of both. They ask for an older
`openai` than the other tests or bring hundreds of megabytes, so they have an environment of their own: scripts/test_frameworks.

The demo model calls a tool only when it has to; a call that is required is always valid, and so is a structured answer.
"""

import asyncio
from typing import Literal

import pytest
from pydantic import BaseModel, Field

SETTINGS = {"temperature": 1.0, "max_tokens": 250, "seed": 3}


class Place(BaseModel):
    """Where somebody lives."""
    kind: Literal["house", "flat"]
    street: str = Field(max_length=8)
    number: int = Field(ge=0, le=99)


def check(place):
    assert isinstance(place, Place) and len(place.street) <= 8


def look_up(name: Literal["a", "b"]) -> str:
    """Looks a place up."""
    return f"{name} is a house"


class TestLangchain:
    @pytest.fixture(scope="class")
    def model(self, gateway):
        openai = pytest.importorskip("langchain_openai")
        return openai.ChatOpenAI(model="tgi", base_url=gateway.url + "/v1", api_key="-", max_retries=0, **SETTINGS)

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_tool(self, model, stream):
        caller = model.bind_tools([look_up], tool_choice="required", parallel_tool_calls=False)
        if stream:
            chunks = list(caller.stream("Where?"))
            assert len(chunks) > 3
            answer = sum(chunks[1:], chunks[0])
        else:
            answer = caller.invoke("Where?")
        (call,) = answer.tool_calls
        assert call["name"] == "look_up" and call["args"]["name"] in ("a", "b") and call["id"]
        # The result goes back, and words come.
        history = [("user", "Where?"), answer, {"role": "tool", "tool_call_id": call["id"], "content": look_up(call["args"]["name"])}]
        assert isinstance(model.invoke(history).content, str)

    @pytest.mark.parametrize("method", ["json_schema", "function_calling"])
    def test_a_structured_answer(self, model, method):
        structured = model.with_structured_output(Place, method=method)
        check(structured.invoke("Where?"))
        check(list(structured.stream("Where?"))[-1])


class TestInstructor:
    @pytest.mark.parametrize("mode", ["TOOLS", "JSON", "JSON_SCHEMA"])
    def test_a_structured_answer(self, gateway, mode):
        instructor = pytest.importorskip("instructor")
        from openai import OpenAI
        plain = OpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0)
        client = instructor.from_openai(plain, mode=getattr(instructor.Mode, mode))
        asked = SETTINGS | {"model": "tgi", "messages": [{"role": "user", "content": "Where?"}], "response_model": Place, "max_retries": 0}
        if mode == "JSON":  # the form is told in words; the model is a toy, so it is enforced too
            asked["extra_body"] = {"response_format": {"type": "json_object", "schema": Place.model_json_schema()}}
        check(client.create(**asked))
        parts = list(client.create_partial(**asked))
        assert len(parts) > 1
        check(Place(**parts[-1].model_dump()))


class TestLlamaIndex:
    @pytest.fixture(scope="class")
    def model(self, gateway):
        like = pytest.importorskip("llama_index.llms.openai_like")
        return like.OpenAILike(model="tgi", api_base=gateway.url + "/v1", api_key="-", is_chat_model=True, max_retries=0,
                               is_function_calling_model=True, temperature=1.0, max_tokens=250, additional_kwargs={"seed": 3})

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_tool(self, model, stream):
        from llama_index.core.tools import FunctionTool
        asked = {"tools": [FunctionTool.from_defaults(look_up)], "user_msg": "Where?", "tool_required": True}
        answer = list(model.stream_chat_with_tools(**asked))[-1] if stream else model.chat_with_tools(**asked)
        call = model.get_tool_calls_from_response(answer)[0]
        assert call.tool_name == "look_up" and call.tool_kwargs["name"] in ("a", "b")

    def test_a_structured_answer(self, model):
        from llama_index.core.llms import ChatMessage
        check(model.as_structured_llm(Place).complete("Where?").raw)
        # In a stream it leaves the choice to the model, which here would answer in words.
        caller = model.model_copy(update={"additional_kwargs": {"seed": 3, "extra_body": {"tool_choice": "required"}}})
        stream = caller.as_structured_llm(Place).stream_chat([ChatMessage(role="user", content="Where?")])
        check(list(stream)[-1].raw)


class TestAgentsOfOpenai:
    @pytest.fixture(scope="class")
    def model(self, gateway):
        agents = pytest.importorskip("agents")
        from openai import AsyncOpenAI
        agents.set_tracing_disabled(True)
        return lambda: agents.OpenAIChatCompletionsModel(
            model="tgi", openai_client=AsyncOpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0))

    def run(self, model, stream, **more):
        from agents import Agent, ModelSettings, Runner
        settings = ModelSettings(temperature=1.0, max_tokens=250, extra_body={"seed": 3}, tool_choice=more.pop("tool_choice", None))

        async def ask():
            agent = Agent(name="a", model=model(), model_settings=settings, **more)
            if not stream:
                return await Runner.run(agent, "Where?")
            run = Runner.run_streamed(agent, "Where?")
            assert len([event async for event in run.stream_events()]) > 3
            return run

        return asyncio.run(ask())

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_tool(self, model, stream):
        from agents import function_tool
        called = []

        @function_tool
        def find(name: Literal["a", "b"]) -> str:
            """Looks a place up."""
            called.append(name)
            return f"{name} is a house"

        run = self.run(model, stream, tools=[find], tool_choice="required")
        assert called and set(called) <= {"a", "b"}
        assert isinstance(run.final_output, str)

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_structured_answer(self, model, stream):
        check(self.run(model, stream, output_type=Place).final_output)


class TestLitellm:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_structured_answer(self, gateway, stream):
        litellm = pytest.importorskip("litellm")
        answer = litellm.completion(model="openai/demo", api_base=gateway.url + "/v1", api_key="-", max_retries=0, stream=stream,
                                    messages=[{"role": "user", "content": "Where?"}], response_format=Place, **SETTINGS)
        if stream:
            answer = litellm.stream_chunk_builder(list(answer))
        check(Place.model_validate_json(answer.choices[0].message.content))
