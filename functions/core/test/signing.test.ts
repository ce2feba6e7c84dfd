import { expect, test } from 'vitest';
import { providerOf } from '#core/models/providers.ts';
import { signingOf } from '../rules/signing.ts';

const AWS = { awsAccessKeyId: 'AKID', awsSecretAccessKey: 'secret', awsRegion: 'eu-west-1' };
const ACCOUNT = { client_email: 'a@b.iam.gserviceaccount.com', private_key: 'PEM', private_key_id: 'k1' };
const vertex = (file: unknown) => ({ vertexCredentials: typeof file === 'string' ? file : JSON.stringify(file) });

test.each<[string, string, Record<string, string>, object | undefined]>([
  ['keys of AWS sign for Bedrock', 'bedrock', AWS, { signer: 'aws', region: 'eu-west-1', accessKeyId: 'AKID' }],
  ['a session token goes along', 'bedrock', { ...AWS, awsSessionToken: 's' }, { sessionToken: 's' }],
  ['an API key goes before them', 'bedrock', { ...AWS, apiKey: 'k' }, undefined],
  ['other providers know no keys of AWS', 'openai', AWS, undefined],
  ['nothing is signed without credentials', 'bedrock', {}, undefined],
  [
    'a region without keys asks for the role of the Pod',
    'bedrock',
    { awsRegion: 'eu-west-1' },
    { signer: 'pod-role', issuer: 'aws', service: 'bedrock', region: 'eu-west-1' },
  ],
  ['the newer endpoint of Bedrock is a service of its own', 'bedrock_mantle', AWS, { service: 'bedrock-mantle' }],
  [
    'a project without a service account asks for Workload Identity',
    'vertex_ai',
    { vertexProject: 'p' },
    { signer: 'pod-role' },
  ],
  [
    'a service account signs for Vertex AI',
    'vertex_ai',
    vertex(ACCOUNT),
    { signer: 'google', tokenUri: 'https://oauth2.googleapis.com/token' },
  ],
  ['an access token goes before it', 'vertex_ai', { ...vertex(ACCOUNT), apiKey: 'k' }, undefined],
  [
    'a service account without its token address',
    'vertex_ai',
    vertex({ ...ACCOUNT, token_uri: 'https://eu.googleapis.com/t' }),
    { tokenUri: 'https://eu.googleapis.com/t' },
  ],
])('%s', (_, provider, credentials, expected) => {
  const signing = signingOf(providerOf(provider), credentials, 'https://aiplatform.googleapis.com/v1');
  expect(signing.ok && signing.value).toEqual(expected === undefined ? undefined : expect.objectContaining(expected));
});

test.each<[string, Record<string, string>, object]>([
  [
    'bedrock',
    { awsAccessKeyId: 'AKID', awsRegion: 'r' },
    { credential: 'awsSecretAccessKey', problem: 'is missing: awsAccessKeyId needs it' },
  ],
  [
    'bedrock',
    { awsSecretAccessKey: 'hush', awsRegion: 'r' },
    { credential: 'awsAccessKeyId', problem: 'is missing: awsSecretAccessKey needs it' },
  ],
  [
    'bedrock',
    { awsAccessKeyId: 'AKID', awsSecretAccessKey: 'hush' },
    { credential: 'awsRegion', problem: 'is missing: requests are signed for a region' },
  ],
  [
    'vertex_ai',
    vertex('hush'),
    {
      credential: 'vertexCredentials',
      problem: 'must be the JSON key of a service account, with client_email and private_key',
    },
  ],
  [
    'vertex_ai',
    vertex({ ...ACCOUNT, token_uri: 'https://googleapis.com.evil.example/t' }),
    { credential: 'vertexCredentials', problem: 'must have a token_uri that is an address of googleapis.com' },
  ],
])(
  '%s: an entry whose credentials do not fit cannot be called, and the reason has no value of them',
  (provider, credentials, why) => {
    expect(signingOf(providerOf(provider), credentials, 'https://aiplatform.googleapis.com/v1')).toEqual({
      ok: false,
      failure: why,
    });
  },
);
