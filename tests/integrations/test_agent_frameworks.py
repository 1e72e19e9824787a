"""The memory's tools in OpenAI's Agents SDK and in pydantic-ai: real packages, a made-up model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as TypedAgent
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as TypedResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agent_memory import AgentMemory
from agent_memory.integrations.openai_agents import function_tools
from agent_memory.integrations.pydantic_ai import agent_tools
from agent_memory.integrations.tools import MemoryTools

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_store", {"content": "Deploys go out on Tuesdays"}),
    ("memory_search", {"query": "when do deploys go out?"}),
    ("memory_store", {"content": ""}),
]


class Script(Model):
    """Calls the tools in order, one a turn, then says that it is done; keeps what it was given."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    async def get_response(self, *_: Any, **request: Any) -> ModelResponse:
        turn = len(self.inputs)
        self.inputs.append(request["input"])
        output: Any
        if turn < len(CALLS):
            name, values = CALLS[turn]
            output = ResponseFunctionToolCall(
                type="function_call", name=name, arguments=json.dumps(values), call_id=f"c{turn}"
            )
        else:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            output = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def check(memory: AgentMemory, results: list[dict[str, Any]]) -> None:
    stored, found, refused = results
    assert [memory_.content for memory_ in memory.list_recent()] == [CALLS[0][1]["content"]]
    assert stored["success"]
    assert "Tuesdays" in json.dumps(found["data"])
    assert refused["error"]["code"] == "VALIDATION_ERROR"


def test_openais_agents_sdk(memory: AgentMemory) -> None:
    model = Script()
    tools = MemoryTools(memory)
    agent = Agent(name="bob", model=model, tools=[*function_tools(tools)])
    config = RunConfig(tracing_disabled=True)
    done = asyncio.run(Runner.run(agent, "I live in Oslo.", run_config=config))
    assert done.final_output == "done"
    outputs = [item for item in model.inputs[-1] if item.get("type") == "function_call_output"]
    check(memory, [json.loads(item["output"]) for item in outputs])
    kept = memory.session({"user_id": "ann"}).add(done.to_input_list())  # what lasts of it
    assert [entry.memory for entry in kept.data] == ["I live in Oslo."]


def test_pydantic_ai(memory: AgentMemory) -> None:
    results: list[dict[str, Any]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> TypedResponse:
        assert {tool.name for tool in info.function_tools} >= {name for name, _ in CALLS}
        results.extend(
            json.loads(part.model_response_str())
            for part in messages[-1].parts
            if isinstance(part, ToolReturnPart)
        )
        if len(results) < len(CALLS):
            return TypedResponse(parts=[ToolCallPart(*CALLS[len(results)])])
        return TypedResponse(parts=[TextPart("done")])

    agent = TypedAgent(FunctionModel(model), tools=agent_tools(MemoryTools(memory)))
    # run_sync leaves its loop open, and a later test is told of it.
    assert asyncio.run(agent.run("hello")).output == "done"
    check(memory, results)


@pytest.mark.parametrize("arguments", ["null", "[]", '"{}"', "7"])
def test_pydantic_ai_tells_the_model_of_arguments_that_are_no_object(
    memory: AgentMemory, arguments: str
) -> None:
    answers: list[str] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> TypedResponse:
        if len(messages) == 1:
            return TypedResponse(parts=[ToolCallPart("memory_store", arguments)])
        answers.append(str(messages[-1].parts))
        return TypedResponse(parts=[TextPart("done")])

    agent = TypedAgent(FunctionModel(model), tools=agent_tools(MemoryTools(memory)))
    assert asyncio.run(agent.run("hello")).output == "done"
    (answer,) = answers
    assert "should be an object" in answer
    assert memory.count() == 0


@pytest.mark.parametrize("make", [function_tools, agent_tools])
def test_every_tool_is_there_with_its_description(memory: AgentMemory, make: Any) -> None:
    tools = make(MemoryTools(memory))
    expected = {tool["name"]: tool["description"] for tool in MemoryTools.definitions()}
    assert {tool.name: tool.description for tool in tools} == expected
