// What does the sample upstream tell somebody who opens it in a browser?
import { BEHAVIOURS } from './behaviours.ts';

export function guide(keyed: boolean): string {
  const models = [...BEHAVIOURS].map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`).join('\n');
  return `The sample upstream: an OpenAI-compatible provider for trying things out. It costs nothing and knows nothing.

  POST /v1/chat/completions   plain and streamed; max_tokens, max_completion_tokens, n and stream_options are honoured
  GET  /v1/models
  GET  /stats                 how many requests came and which tokens were reported, by model
${keyed ? '\nIt asks for a bearer key: that of the sample Secrets.\n' : ''}
Models, by how they behave (any other name behaves like sample-small):

${models}

The same request gets the same answer; a word counts as a token.
`;
}
