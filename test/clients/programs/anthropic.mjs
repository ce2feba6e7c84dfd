// Anthropic's library for JavaScript, as its README uses it. SCENE: text, stream or tool.
import Anthropic from '@anthropic-ai/sdk';

const { BASE_URL, KEY, MODEL: model, SCENE } = process.env;
const client = SCENE === 'text' ? new Anthropic() : new Anthropic({ baseURL: BASE_URL, apiKey: KEY });
const messages = [{ role: 'user', content: SCENE === 'tool' ? 'use the tool' : 'say hi' }];
const ask = { model, messages, max_tokens: 1000 };
const input_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
if (SCENE === 'tool') ask.tools = [{ name: 'weather', description: 'The weather.', input_schema }];

async function run() {
  if (SCENE === 'stream') return client.messages.stream(ask).finalText();
  const first = await client.messages.create(ask);
  const call = first.content.find(({ type }) => type === 'tool_use');
  if (call === undefined) return first.content[0].text;
  const result = { type: 'tool_result', tool_use_id: call.id, content: `tool-ran ${JSON.stringify(call.input)}` };
  messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: [result] });
  return (await client.messages.create(ask)).content[0].text;
}

const told = await run().then(
  (text) => ({ text }),
  (error) => ({ error: error.message }),
);
console.log(JSON.stringify(told));
