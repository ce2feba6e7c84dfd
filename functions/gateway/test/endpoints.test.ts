// Addresses of entries: no credential leads a request, or the token of a Pod, to another host.
import { describe, expect, test } from 'vitest';
import { PROVIDER_NAMES } from '#core/models/providers.ts';
import { entry } from '../../../test/gateway/instance.ts';
import { createEndpoints } from '../targets/endpoints.ts';
import { openai } from '../wire/chat/openai.ts';

function reach(provider: string, credentials: Readonly<Record<string, string>>) {
  const refs = Object.keys(credentials).map((name) => [name, { secret: 's', secretKey: name }] as const);
  const endpointOf = createEndpoints({ read: (_, name) => credentials[name] });
  return endpointOf({ entry: entry('gpt', { provider, credentials: Object.fromEntries(refs) }), codec: openai });
}

const PLACES = { awsRegion: 'eu-west-1', vertexLocation: 'us-east5', vertexProject: 'example.com:p-1' };
const HOSTILE = [
  'attacker.example/#',
  'attacker.example?',
  'x@attacker.example',
  'a/../b',
  '//attacker.example',
  'a b',
  '..',
  '-a',
  '%2f',
];

describe.each(Object.keys(PLACES))('the credential %s', (name) => {
  test.each(HOSTILE)('is never part of an address as %j, whatever the provider and its apiBase', (value) => {
    for (const provider of [...PROVIDER_NAMES, 'inhouse']) {
      for (const more of [{}, { apiBase: 'https://us-east5-aiplatform.googleapis.com/v1' }]) {
        const reached = reach(provider, { ...PLACES, ...more, [name]: value });
        expect(reached).toEqual({ ok: false, failure: `credential ${name} cannot be part of an address: s/${name}` });
      }
    }
  });
});

test.each(['attacker.example', 'a.attacker', 'a:443'])('a region %j does not choose a host', (awsRegion) => {
  expect(reach('bedrock', { ...PLACES, awsRegion }).ok).toBe(false);
});

describe("the Pod's own token of Google", () => {
  const addressed = (apiBase: string) => reach('vertex_ai', { vertexProject: 'p-1', apiBase });

  test.each([
    'https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/endpoints/openapi',
    'https://us-east5-aiplatform.googleapis.com:443/v1',
    'https://aiplatform-private.p.googleapis.com',
  ])('goes to %s', (apiBase) => {
    expect(addressed(apiBase)).toMatchObject({ value: { signing: { signer: 'pod-role', issuer: 'google' } } });
  });

  test.each([
    'http://aiplatform.googleapis.com/v1',
    'https://googleapis.com.attacker.example/v1',
    'https://attackergoogleapis.com/v1',
    'https://attacker.example/googleapis.com/',
    'https://attacker.example#.googleapis.com/',
    'https://googleapis.com:8443/v1',
    'http://127.0.0.1:8080/v1',
  ])('does not go to %s', (apiBase) => {
    expect(addressed(apiBase)).toMatchObject({ ok: false, failure: expect.stringContaining('googleapis.com') });
    expect(reach('vertex_ai', { vertexProject: 'p-1', apiBase, apiKey: 'k' }).ok).toBe(true);
  });
});
