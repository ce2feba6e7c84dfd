# Anthropic's library for Python, as its README uses it. SCENE: text, stream or tool.
import json
import os

from anthropic import Anthropic

scene = os.environ["SCENE"]
BASE_URL, KEY = os.environ["BASE_URL"], os.environ["KEY"]
client = Anthropic() if scene == "text" else Anthropic(base_url=BASE_URL, api_key=KEY)
messages = [{"role": "user", "content": "use the tool" if scene == "tool" else "say hi"}]
ask = {"model": os.environ["MODEL"], "messages": messages, "max_tokens": 1000}
if scene == "tool":
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    ask["tools"] = [{"name": "weather", "description": "The weather.", "input_schema": schema}]


def run():
    if scene == "stream":
        with client.messages.stream(**ask) as stream:
            return stream.get_final_text()
    first = client.messages.create(**ask)
    calls = [block for block in first.content if block.type == "tool_use"]
    if not calls:
        return first.content[0].text
    result = {"type": "tool_result", "tool_use_id": calls[0].id, "content": "tool-ran"}
    messages.extend([{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}])
    return client.messages.create(**ask).content[0].text


try:
    print(json.dumps({"text": run()}))
except Exception as error:
    print(json.dumps({"error": str(error)}))
