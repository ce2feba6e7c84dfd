// What does the sample upstream tell somebody who opens it in a browser?
import { BEHAVIOURS } from './behaviours.ts';

export function guide(keyed: boolean): string {
  const models = [...BEHAVIOURS].map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`).join('\n');
  return `The sample upstream: a provider for trying things out, in two dialects. It costs nothing and knows nothing.

  POST /v1/chat/completions   plain and streamed; max_tokens, max_completion_tokens, n and stream_options are honoured
  POST /v1/messages           the same answers in Anthropic's dialect (a model entry "anthropic/…", with this address as apiBase)
  GET  /v1/models
  GET  /stats                 how many requests came and which tokens were reported, by model
${keyed ? '\nIt asks for a key (as bearer, or in x-api-key): that of the sample Secrets.\n' : ''}
Models, by how they behave (any other name behaves like sample-small):

${models}

The same request gets the same answer; a word counts as a token.
`;
}
