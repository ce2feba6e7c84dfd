// The AI SDK, as its documentation uses it. API: responses, chat or messages; SCENE: text, stream or tool.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import * as z from 'zod';

const { BASE_URL, KEY, MODEL, API, SCENE } = process.env;
const openai = createOpenAI({ baseURL: BASE_URL, apiKey: KEY });
const anthropic = createAnthropic({ baseURL: BASE_URL, apiKey: KEY });
const model = {
  responses: () => openai.responses(MODEL),
  chat: () => openai.chat(MODEL),
  messages: () => anthropic(MODEL),
}[API]();
const weather = tool({
  description: 'The weather.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `tool-ran in ${city}`,
});

async function run() {
  if (SCENE === 'stream') {
    let failed;
    const result = streamText({
      model,
      prompt: 'say hi',
      onError: ({ error }) => {
        failed = error;
      },
    });
    let text = '';
    for await (const part of result.textStream) text += part;
    if (failed !== undefined) throw failed;
    return text;
  }
  const ask =
    SCENE === 'tool' ? { prompt: 'use the tool', tools: { weather }, stopWhen: stepCountIs(3) } : { prompt: 'say hi' };
  const providerOptions = API === 'responses' ? { openai: { store: false } } : {};
  return (await generateText({ model, providerOptions, ...ask })).text;
}

const told = await run().then(
  (text) => ({ text }),
  (error) => ({ error: error.message }),
);
console.log(JSON.stringify(told));
