// Keys of AWS for the archive: from the environment, or of the Pod's role (IRSA, EKS Pod Identity).
import { readFile } from 'node:fs/promises';
import { createPodIdentity } from '../upstream/pod-identity.ts';
import { readTokenReply } from '../upstream/token-reply.ts';

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** AWS's own variables. */
export interface AwsEnvironment {
  readonly AWS_REGION?: string | undefined;
  readonly AWS_ACCESS_KEY_ID?: string | undefined;
  readonly AWS_SECRET_ACCESS_KEY?: string | undefined;
  readonly AWS_SESSION_TOKEN?: string | undefined;
  readonly AWS_ROLE_ARN?: string | undefined;
  readonly AWS_WEB_IDENTITY_TOKEN_FILE?: string | undefined;
  readonly AWS_CONTAINER_CREDENTIALS_FULL_URI?: string | undefined;
  readonly AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE?: string | undefined;
}

interface AwsKeysDependencies {
  readonly region: string;
  /** Through the proxies. */
  readonly fetch: typeof globalThis.fetch;
  readonly now: () => number;
}

interface ExpiringKeys {
  readonly value: AwsKeys;
  readonly until: number;
}

/** Keys are renewed this time (in milliseconds) before they expire. */
const MARGIN = 60_000;

/**
 * The variables are tried in the order of AWS's own tools. The keys of a role are kept until shortly before their end.
 */
export function createAwsKeys(
  environment: AwsEnvironment,
  deps: AwsKeysDependencies,
): (signal: AbortSignal) => Promise<AwsKeys> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (accessKeyId !== undefined && secretAccessKey !== undefined) {
    const { AWS_SESSION_TOKEN: sessionToken } = environment;
    const keys = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
    return () => Promise.resolve(keys);
  }
  const request = sourceOf(environment, deps);
  let latest: ExpiringKeys | undefined;
  return async (signal) => {
    if (latest === undefined || deps.now() >= latest.until - MARGIN) latest = await request(signal);
    return latest.value;
  };
}

function sourceOf(environment: AwsEnvironment, { region, fetch, now }: AwsKeysDependencies) {
  const { AWS_ROLE_ARN: arn, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile } = environment;
  if (arn !== undefined && tokenFile !== undefined) {
    const pod = createPodIdentity({ role: { arn, tokenFile }, fetch, now });
    return (signal: AbortSignal): Promise<ExpiringKeys> => pod.awsKeys(region, signal);
  }
  const { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file } = environment;
  return async (signal: AbortSignal): Promise<ExpiringKeys> => {
    if (url === undefined)
      throw new Error(
        'there are no keys of AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the service account of the reconciler a role',
      );
    return askAgent(url, file, signal);
  };
}

/** The agent of EKS answers on the node: no proxy is between. */
async function askAgent(url: string, tokenFile: string | undefined, signal: AbortSignal): Promise<ExpiringKeys> {
  const headers = tokenFile === undefined ? {} : { authorization: (await readFile(tokenFile, 'utf8')).trim() };
  const response = await globalThis.fetch(url, { headers, redirect: 'manual', signal });
  if (!response.ok)
    throw new Error(
      `the agent of EKS refused keys for the role of the Pod: status ${response.status}. Check the Pod Identity association`,
    );
  const {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: sessionToken,
    Expiration: end,
  } = JSON.parse(await readTokenReply(response)) as Record<string, unknown>;
  const until = Date.parse(String(end));
  if (
    typeof accessKeyId !== 'string' ||
    typeof secretAccessKey !== 'string' ||
    typeof sessionToken !== 'string' ||
    Number.isNaN(until)
  )
    throw new Error('the reply of the agent of EKS has no keys for the role of the Pod');
  return { value: { accessKeyId, secretAccessKey, sessionToken }, until };
}
