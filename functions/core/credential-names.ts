// Names of credentials, and which of them a provider's requests carry.
import type { DialectName, Provider } from './providers.ts';

/** All names that are known (DESIGN 7). */
export const CREDENTIAL_NAMES: ReadonlyArray<string> = [
  'apiKey',
  'apiBase',
  'apiVersion',
  'organization',
  'awsAccessKeyId',
  'awsSecretAccessKey',
  'awsRegion',
  'vertexCredentials',
  'vertexProject',
  'vertexLocation',
];

/** Beside those that the address is made of: OpenAI's version goes into the query, Anthropic's into a header. */
const READ: Readonly<Record<DialectName, ReadonlyArray<string>>> = {
  openai: ['apiKey', 'apiBase', 'apiVersion', 'organization'],
  anthropic: ['apiKey', 'apiBase', 'apiVersion'],
};

/** A region, a project: nothing that could lead to another host. */
const ADDRESS_PART = /^[A-Za-z0-9][-A-Za-z0-9.:]*$/;

export function credentialsReadBy(provider: Provider): ReadonlyArray<string> {
  const known = readBy.get(provider);
  if (known !== undefined) return known;
  const read = [...READ[provider.dialect], ...partsOf(provider)];
  readBy.set(provider, read);
  return read;
}

/** Rows are constants: what is read of each is made out once. */
const readBy = new WeakMap<Provider, ReadonlyArray<string>>();

/** Credentials that the provider's own address is made of. */
export function partsOf({ base = '' }: Provider): ReadonlyArray<string> {
  if (!base.includes('{')) return NONE;
  return [...new Set([...base.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name))];
}

const NONE: ReadonlyArray<string> = [];

/** The provider's own address; undefined where it has none, or what it is made of is not there. */
export function ownAddress(provider: Provider, credentials: Readonly<Record<string, string>>): string | undefined {
  const fits = partsOf(provider).every((name) => ADDRESS_PART.test(credentials[name] ?? ''));
  return fits ? provider.base?.replaceAll(/\{(\w+)\}/g, (_, name: string) => credentials[name] ?? '') : undefined;
}
