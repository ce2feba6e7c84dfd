// Short-lived credentials of the Pod: of the AWS role of its service account (IRSA), and of Google's Workload Identity.
import { readFile } from 'node:fs/promises';
import type { PodIdentity } from './signing.ts';
import { readTokenReply } from './token-reply.ts';

/** The role and the file of its token, which EKS writes into the Pod's environment. */
export interface Role {
  readonly arn: string;
  readonly tokenFile: string;
}

interface Dependencies {
  readonly role: Role | undefined;
  readonly fetch: typeof globalThis.fetch;
  readonly now: () => number;
}

/** Google's metadata server. It answers from inside the cluster: a Pod without Workload Identity does not wait long. */
const METADATA_URL = 'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token';

export function createPodIdentity({ role, fetch, now }: Dependencies): PodIdentity {
  return {
    awsKeys: async (region, signal) => {
      if (role === undefined)
        throw new Error(
          'the Pod has no AWS role: AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are not set. Annotate its ServiceAccount with a role',
        );
      const response = await fetch(`https://sts.${region}.amazonaws.com/`, {
        method: 'POST',
        body: new URLSearchParams({
          Action: 'AssumeRoleWithWebIdentity',
          Version: '2011-06-15',
          RoleArn: role.arn,
          RoleSessionName: 'gateway-operator',
          WebIdentityToken: (await readFile(role.tokenFile, 'utf8')).trim(),
        }),
        redirect: 'manual',
        signal,
      });
      if (!response.ok)
        throw new Error(
          `AWS refused keys for the role of the Pod: status ${response.status}. Check the trust policy of the role`,
        );
      return keysIn(await readTokenReply(response));
    },
    googleToken: async (signal) => {
      const response = await fetch(METADATA_URL, {
        headers: { 'metadata-flavor': 'Google' },
        redirect: 'manual',
        signal,
      });
      if (!response.ok) throw new Error(`the Pod has no Workload Identity of Google: status ${response.status}`);
      const { access_token: text, expires_in: seconds } = JSON.parse(await readTokenReply(response)) as Record<
        string,
        unknown
      >;
      if (typeof text !== 'string' || typeof seconds !== 'number')
        throw new Error('the reply of Google has no access token for the Pod');
      return { value: text, until: now() + seconds * 1000 };
    },
  };
}

/** The keys in a reply, which is XML. Their values contain nothing that XML escapes. */
function keysIn(xml: string): Awaited<ReturnType<PodIdentity['awsKeys']>> {
  const parts = new Map([...xml.matchAll(/<(\w+)>([^<]+)<\//g)].map(([, name, value]) => [name, value]));
  const part = (name: string) => parts.get(name) ?? '';
  const [accessKeyId, secretAccessKey, sessionToken] = [
    part('AccessKeyId'),
    part('SecretAccessKey'),
    part('SessionToken'),
  ];
  const until = Date.parse(part('Expiration'));
  if (accessKeyId === '' || secretAccessKey === '' || sessionToken === '' || Number.isNaN(until)) {
    throw new Error('the reply of AWS has no keys for the role of the Pod');
  }
  return { value: { accessKeyId, secretAccessKey, sessionToken }, until };
}
