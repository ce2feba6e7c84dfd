# The OpenAI library for Python, as its README uses it. API: chat, responses or embeddings; SCENE: text, stream or tool.
import json
import os

from openai import OpenAI

model, api, scene = os.environ["MODEL"], os.environ["API"], os.environ["SCENE"]
BASE_URL, KEY = os.environ["BASE_URL"], os.environ["KEY"]
client = OpenAI() if scene == "text" else OpenAI(base_url=BASE_URL, api_key=KEY)
prompt = "use the tool" if scene == "tool" else "say hi"
parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def chat():
    messages = [{"role": "user", "content": prompt}]
    ask = {"model": model, "messages": messages}
    if scene == "tool":
        ask["tools"] = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    if scene == "stream":
        chunks = client.chat.completions.create(stream=True, **ask)
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    message = client.chat.completions.create(**ask).choices[0].message
    if not message.tool_calls:
        return message.content
    call = message.tool_calls[0]
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "tool-ran " + call.function.arguments}]
    return client.chat.completions.create(**ask).choices[0].message.content


def responses():
    items = [{"role": "user", "content": prompt}]
    ask = {"model": model, "input": items}
    if scene == "tool":
        ask["tools"] = [{"type": "function", "name": "weather", "parameters": parameters, "strict": False}]
    if scene == "stream":
        text = ""
        for event in client.responses.create(stream=True, **ask):
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.failed":
                raise RuntimeError(event.response.error.message)
        return text
    first = client.responses.create(**ask)
    calls = [item for item in first.output if item.type == "function_call"]
    if not calls:
        return first.output_text
    items += first.output
    items.append({"type": "function_call_output", "call_id": calls[0].call_id, "output": "tool-ran"})
    return client.responses.create(**ask).output_text


def embeddings():
    data = client.embeddings.create(model=model, input=["say", "hi"]).data
    return f"{len(data)} vectors of {len(data[0].embedding)}"


try:
    print(json.dumps({"text": {"chat": chat, "responses": responses, "embeddings": embeddings}[api]()}))
except Exception as error:
    print(json.dumps({"error": str(error)}))
