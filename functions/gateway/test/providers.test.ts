// The request that each provider gets on each of its routes: its address, its headers and its body, in one golden file.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROVIDER_NAMES } from '#core/models/providers.ts';
import { entry, KEY, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { type Script, sentText } from '../../../test/gateway/upstream.ts';
import { APIS } from '../wire/apis.ts';

const PLACES: Readonly<Record<string, string>> = {
  awsRegion: 'eu-west-1',
  vertexLocation: 'us-east5',
  vertexProject: 'p-1',
  apiVersion: '2026-06-01',
};
const ASKED = { messages: [{ role: 'user', content: 'Hi.' }], input: 'Hi.' };
const LIMITS: Readonly<Record<string, object>> = {
  chat: { max_completion_tokens: 9 },
  messages: { max_tokens: 9 },
  responses: { max_output_tokens: 16 },
};
const MEMBERS: Readonly<Record<string, ReadonlyArray<'messages' | 'input'>>> = {
  chat: ['messages'],
  messages: ['messages'],
};

/** Entries by name, as a platform team writes them. Providers without a row have an `apiBase`. */
const ENTRIES: Readonly<Record<string, { provider: string; apiBase?: string; credentials?: ReadonlyArray<string> }>> = {
  ...Object.fromEntries(PROVIDER_NAMES.map((provider) => [provider, { provider }])),
  azure: { provider: 'azure', apiBase: 'https://team.openai.azure.com/openai/v1' },
  'azure by deployment': {
    provider: 'azure',
    apiBase: 'https://team.openai.azure.com/openai/deployments/gpt',
    credentials: ['apiVersion'],
  },
  vllm: { provider: 'vllm', apiBase: 'http://vllm:8000/v1' },
  'any name': { provider: 'inhouse', apiBase: 'https://models.example/v1' },
};

test('every provider has a row with its requests', async () => {
  const lines: string[] = [];
  for (const [name, written] of Object.entries(ENTRIES)) {
    for (const api of APIS) {
      for (const stream of api.name === 'embeddings' ? [false] : [false, true]) {
        const sent = await request(written, api.name, api.path, stream);
        if (sent !== undefined) lines.push(`--- ${name}, ${api.name}${stream ? ', streamed' : ''}\n${sent}`);
      }
    }
  }
  await expect(`${lines.join('\n\n')}\n`).toMatchFileSnapshot(join(import.meta.dirname, 'golden/providers.golden.txt'));
});

/** The request as it is sent; undefined: the provider does not have the route. */
async function request(
  { provider, apiBase, credentials = [] }: (typeof ENTRIES)[string],
  name: string,
  path: string,
  stream: boolean,
): Promise<string | undefined> {
  const names = ['apiKey', ...credentials, 'awsRegion', 'vertexLocation', 'vertexProject'];
  const refs = Object.fromEntries(names.map((credential) => [credential, { secret: 's', secretKey: credential }]));
  const model = entry('m', { provider, credentials: refs, ...(apiBase === undefined ? {} : { apiBase }) });
  const refusing: Script = () => ({ status: 400 });
  const { app, fake } = stage({
    snapshot: snapshotOf([model], { retries: 0 }),
    script: refusing,
    deps: { credentials: { read: (_, credential) => PLACES[credential] ?? 'KEY' } },
  });
  const asked = Object.fromEntries((MEMBERS[name] ?? ['input']).map((member) => [member, ASKED[member]]));
  const body = JSON.stringify({ model: 'm', ...asked, ...LIMITS[name], ...(stream ? { stream } : {}) });
  await app.request(path, { method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body });
  const [sent] = fake.requests;
  if (sent === undefined) return undefined;
  const headers = Object.entries(sent.headers).filter(
    ([header]) => !/^(content-type|user-agent|accept-encoding)$/.test(header),
  );
  return [`POST ${sent.url}`, ...headers.map(([header, value]) => `${header}: ${value}`).sort(), sentText(sent)].join(
    '\n',
  );
}
