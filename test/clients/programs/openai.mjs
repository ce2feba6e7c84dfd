// The OpenAI library for JavaScript, as its README uses it. API: chat, responses or embeddings; SCENE: text, stream or tool.
import OpenAI from 'openai';

const { BASE_URL, KEY, MODEL: model, API, SCENE } = process.env;
const client = SCENE === 'text' ? new OpenAI() : new OpenAI({ baseURL: BASE_URL, apiKey: KEY });
const stream = SCENE === 'stream';
const prompt = SCENE === 'tool' ? 'use the tool' : 'say hi';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

const apis = {
  async chat() {
    const messages = [{ role: 'user', content: prompt }];
    const ask = { model, messages };
    if (SCENE === 'tool') ask.tools = [{ type: 'function', function: { name: 'weather', parameters } }];
    if (stream) {
      let text = '';
      for await (const chunk of await client.chat.completions.create({ ...ask, stream }))
        text += chunk.choices[0]?.delta.content ?? '';
      return text;
    }
    const [choice] = (await client.chat.completions.create(ask)).choices;
    const [call] = choice.message.tool_calls ?? [];
    if (call === undefined) return choice.message.content;
    messages.push(choice.message, {
      role: 'tool',
      tool_call_id: call.id,
      content: `tool-ran ${call.function.arguments}`,
    });
    return (await client.chat.completions.create(ask)).choices[0].message.content;
  },
  async responses() {
    const input = [{ role: 'user', content: prompt }];
    const ask = { model, input };
    if (SCENE === 'tool') ask.tools = [{ type: 'function', name: 'weather', parameters, strict: false }];
    if (stream) {
      let text = '';
      for await (const event of await client.responses.create({ ...ask, stream })) {
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (event.type === 'response.failed') throw new Error(event.response.error.message);
      }
      return text;
    }
    const first = await client.responses.create(ask);
    const call = first.output.find(({ type }) => type === 'function_call');
    if (call === undefined) return first.output_text;
    input.push(...first.output, {
      type: 'function_call_output',
      call_id: call.call_id,
      output: `tool-ran ${call.arguments}`,
    });
    return (await client.responses.create(ask)).output_text;
  },
  async embeddings() {
    const { data } = await client.embeddings.create({ model, input: ['say', 'hi'] });
    return `${data.length} vectors of ${data[0].embedding.length}`;
  },
};

const told = await apis[API]().then(
  (text) => ({ text }),
  (error) => ({ error: error.message }),
);
console.log(JSON.stringify(told));
