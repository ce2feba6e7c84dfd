// The signing of a model entry's requests, if it has no `apiKey`: by keys of AWS, a service account of Google, or the
// role of the Pod.

import { err, ok, type Result } from '../failure/result.ts';
import { member, parseJson, textOf } from '../json/json.ts';
import type { Provider } from '../models/providers.ts';
import type { Signing } from '../ports/upstream.ts';

/** The credential that is missing or wrong, and what it must be. */
interface SigningProblem {
  readonly credential: string;
  readonly problem: string;
}

type Credentials = Readonly<Record<string, string>>;

/**
 * Undefined: nothing is signed. A failure names the credential that is missing or wrong, never its value. `base`: the
 * address that the requests go to.
 */
export function signingOf(
  { signing }: Pick<Provider, 'signing'>,
  credentials: Credentials,
  base: string,
): Result<Signing | undefined, SigningProblem> {
  if (credentials.apiKey !== undefined) return ok(undefined);
  if (signing === 'bedrock' || signing === 'bedrock-mantle') return signingOfAws(credentials, signing);
  if (signing !== 'google') return ok(undefined);
  const { vertexCredentials, vertexProject } = credentials;
  if (vertexCredentials !== undefined) return signingOfGoogle(vertexCredentials);
  if (vertexProject === undefined) return ok(undefined);
  // The token is that of the Pod, or of its node: a receiver could use their rights.
  if (!GOOGLE.test(base))
    return err({
      credential: 'vertexCredentials',
      problem: 'is missing, like apiKey: the role of the Pod is used only for https addresses of googleapis.com',
    });
  return ok({ signer: 'pod-role', issuer: 'google' });
}

function signingOfAws(credentials: Credentials, service: string): Result<Signing | undefined, SigningProblem> {
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsRegion: region } = credentials;
  if (accessKeyId === undefined && secretAccessKey === undefined) {
    return ok(region === undefined ? undefined : { signer: 'pod-role', issuer: 'aws', service, region });
  }
  if (accessKeyId === undefined)
    return err({ credential: 'awsAccessKeyId', problem: 'is missing: awsSecretAccessKey needs it' });
  if (secretAccessKey === undefined)
    return err({ credential: 'awsSecretAccessKey', problem: 'is missing: awsAccessKeyId needs it' });
  if (region === undefined)
    return err({ credential: 'awsRegion', problem: 'is missing: requests are signed for a region' });
  const { awsSessionToken: sessionToken } = credentials;
  const session = sessionToken === undefined ? {} : { sessionToken };
  return ok({ signer: 'aws', service, region, accessKeyId, secretAccessKey, ...session });
}

const GOOGLE = /^https:\/\/([a-z0-9-]+\.)*googleapis\.com(:443)?(\/|$)/i;

/**
 * Google's own address, or one of this machine, for tests and proxies. The address gets a signed assertion, and the
 * author of the key file chooses it.
 */
const TOKEN_URI = /^(https:\/\/([a-z0-9-]+\.)*googleapis\.com|http:\/\/127\.0\.0\.1:\d+)\//;

function signingOfGoogle(text: string): Result<Signing, SigningProblem> {
  const file = parseJson(text);
  const [clientEmail, privateKey] = [textOf(member(file, 'client_email')), textOf(member(file, 'private_key'))];
  if (clientEmail === undefined || privateKey === undefined)
    return err({
      credential: 'vertexCredentials',
      problem: 'must be the JSON key of a service account, with client_email and private_key',
    });
  const tokenUri = textOf(member(file, 'token_uri')) ?? 'https://oauth2.googleapis.com/token';
  if (!TOKEN_URI.test(tokenUri))
    return err({
      credential: 'vertexCredentials',
      problem: 'must have a token_uri that is an address of googleapis.com',
    });
  return ok({
    signer: 'google',
    clientEmail,
    privateKey,
    privateKeyId: textOf(member(file, 'private_key_id')),
    tokenUri,
  });
}
