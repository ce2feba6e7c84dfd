// LangChain's chat model for OpenAI, as its documentation uses it. API: chat or responses; SCENE: text, stream or tool.
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import * as z from 'zod';

const { BASE_URL, KEY, MODEL, API, SCENE } = process.env;
const chat =
  API === 'responses'
    ? new ChatOpenAI({ model: MODEL, apiKey: KEY, configuration: { baseURL: BASE_URL }, useResponsesApi: true })
    : new ChatOpenAI({ model: MODEL, apiKey: KEY, configuration: { baseURL: BASE_URL } });
const weather = tool(async ({ city }) => `tool-ran in ${city}`, {
  name: 'weather',
  description: 'The weather.',
  schema: z.object({ city: z.string() }),
});

async function run() {
  if (SCENE === 'stream') {
    let text = '';
    for await (const chunk of await chat.stream('say hi')) text += chunk.text;
    return text;
  }
  if (SCENE !== 'tool') return (await chat.invoke('say hi')).text;
  const bound = chat.bindTools([weather]);
  const messages = [new HumanMessage('use the tool')];
  const first = await bound.invoke(messages);
  const [call] = first.tool_calls;
  messages.push(first, new ToolMessage({ content: await weather.invoke(call.args), tool_call_id: call.id }));
  return (await bound.invoke(messages)).text;
}

const told = await run().then(
  (text) => ({ text }),
  (error) => ({ error: error.message }),
);
console.log(JSON.stringify(told));
