// Names of credentials, and those that a provider's address is made of.
import type { Provider } from './providers.ts';

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

/** A region, a project: nothing that could lead to another host. */
const ADDRESS_PART = /^[A-Za-z0-9][-A-Za-z0-9.:]*$/;

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
