// The kind GatewayInstance: a proxy, its database, its store and its models.
import * as z from 'zod';
import type { INSTANCE_API_VERSION } from '../names/group.ts';
import type { KubeObject } from '../names/object-meta.ts';
import { listBy, type Rule, text, withRule } from '../validation/rule.ts';
import { AllowedNamespaces } from './allowed-namespaces.ts';
import { KeyPolicies } from './key-policy.ts';
import { ModelEntry } from './model-entry.ts';
import { HTTPRoute, Ingress, routeRules } from './route.ts';
import {
  choice,
  Duration,
  FreeText,
  integer,
  Name,
  observedFields,
  SecretKeyName,
  Spend,
  Timestamp,
} from './shared-fields.ts';
import { Workload } from './workload.ts';

const secretKey = (what: string) => SecretKeyName.describe(`Name of the Secret's key that holds the ${what}.`);
const secretName = Name.describe('Name of the Secret, in the namespace of the instance.');

const RedisSecretRef = z.object({
  nameRef: secretName,
  keys: withRule(
    withRule(
      z.object({
        hostSecret: secretKey(
          'host: a name or several, such as `a:26379,b:26379` (TCP; `rediss://name` for TLS), `https://…` (Upstash REST) or the word `memory` (one process only)',
        ),
        portSecret: secretKey(
          'port; a port in the host has precedence, and if every host has one, the key may be absent',
        ),
        passwordSecret: secretKey('password (for Upstash the token); an empty value means none'),
        usernameSecret: secretKey('name of the ACL user; absent: `default`').optional(),
        caSecret: secretKey(
          'certificates (PEM) of the trusted authorities, in place of those of Node; only with `rediss://`',
        ).optional(),
        clientCertificateSecret: secretKey('client certificate (PEM); together with `clientKeySecret`').optional(),
        clientKeySecret: secretKey('private key (PEM) of the client certificate, without a passphrase').optional(),
        sentinelMasterSecret: secretKey(
          'name that the Sentinels have for the primary; if it is mapped, host and port are those of Sentinels',
        ).optional(),
        sentinelPasswordSecret: secretKey('password of the Sentinels; absent: they have the login of Redis').optional(),
      }),
      {
        id: 'ClientCertificateWithoutKey',
        cel: 'has(self.clientCertificateSecret) == has(self.clientKeySecret)',
        isMet: ({ clientCertificateSecret, clientKeySecret }) =>
          (clientCertificateSecret === undefined) === (clientKeySecret === undefined),
        message: 'must come together with clientKeySecret; write both, or none',
        at: 'clientCertificateSecret',
      },
    ),
    {
      id: 'SentinelPasswordWithoutMaster',
      cel: '!has(self.sentinelPasswordSecret) || has(self.sentinelMasterSecret)',
      isMet: ({ sentinelPasswordSecret, sentinelMasterSecret }) =>
        sentinelPasswordSecret === undefined || sentinelMasterSecret !== undefined,
      message: 'needs sentinelMasterSecret too; write both, or remove sentinelPasswordSecret',
      at: 'sentinelPasswordSecret',
    },
  ).describe('Which key of the Secret has each value.'),
});

const DatabaseSecretRef = z.object({
  nameRef: secretName,
  keys: withRule(
    withRule(
      z.object({
        hostSecret: secretKey('host, `name` or `name:port`'),
        portSecret: secretKey('port; absent: the port in the host, else 5432').optional(),
        passwordSecret: secretKey('password; an empty value means none'),
        usernameSecret: secretKey('user name'),
        dbnameSecret: secretKey('name of the database'),
        sslmodeSecret: secretKey(
          'mode of TLS, as in libpq: `disable`, `prefer`, `require`, `verify-ca` or `verify-full`; absent: `prefer`',
        ).optional(),
        sslrootcertSecret: secretKey('certificates (PEM) of the trusted authorities, or `system`').optional(),
        sslcertSecret: secretKey('client certificate (PEM); together with `sslkeySecret`').optional(),
        sslkeySecret: secretKey('private key (PEM) of the client certificate, without a passphrase').optional(),
      }),
      {
        id: 'PasswordIsUsername',
        cel: 'self.passwordSecret != self.usernameSecret',
        isMet: ({ passwordSecret, usernameSecret }) => passwordSecret !== usernameSecret,
        message: 'must be another key than usernameSecret; write the name of the key that holds the password',
        at: 'passwordSecret',
      },
    ),
    {
      id: 'CertificateWithoutKey',
      cel: 'has(self.sslcertSecret) == has(self.sslkeySecret)',
      isMet: ({ sslcertSecret, sslkeySecret }) => (sslcertSecret === undefined) === (sslkeySecret === undefined),
      message: 'must come together with sslkeySecret; write both, or none',
      at: 'sslcertSecret',
    },
  ).describe('Which key of the Secret has each value.'),
});

const Timeouts = z.object({
  connect: Duration.default('5s').describe('Maximum time to connect to the provider.'),
  firstByte: Duration.default('60s').describe('Until the first byte of a stream; a plain reply has `total`.'),
  idle: Duration.default('60s').describe('Between two pieces of a stream.'),
  total: Duration.default('600s').describe('For the whole request, all attempts together; an hour at most.'),
});

const Cooldown = z.object({
  failures: integer(1, 1000)
    .default(3)
    .describe(
      'Failures in a row that start a cooldown; a 429 with `retry-after` of up to a minute starts one by itself.',
    ),
  within: Duration.default('30s').describe('The time in which the failures are counted.'),
  duration: Duration.default('30s').describe('How long the model entry gets no requests.'),
});

const Routing = z.object({
  strategy: choice('SimpleShuffle', 'Priority', 'LeastBusy').describe(
    'How one of several model entries with the same `modelName` is chosen: `SimpleShuffle` at random by `weight`; `Priority` the lowest `priority` that is healthy; `LeastBusy` the one with the fewest requests in flight. If these are equal, `weight` decides. Each gateway process counts its own requests in flight and failures.',
  ),
  retries: integer(0, 10).default(2).describe('Attempts after a failed one, before the first byte of the reply.'),
  timeouts: Timeouts.prefault({}).describe('How long the gateway waits for a provider.'),
  cooldown: Cooldown.prefault({}).describe('When a failing model entry gets no requests.'),
});

const INSTANCE_NAME = /^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$/;

/**
 * A Service, a ConfigMap and a path of the gateway are named after the instance. The one rule at the root of the CRD;
 * never to be tightened.
 */
export const instanceName: Rule<string> = {
  id: 'InstanceName',
  cel: `self.metadata.name.matches('${INSTANCE_NAME.source}')`,
  isMet: (name) => INSTANCE_NAME.test(name),
  message: 'must be at most 40 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`',
};

export const GatewayInstanceSpec = withRule(
  z.object({
    redisSecretRef: RedisSecretRef.describe('The Secret with the connection to Redis.'),
    databaseSecretRef: DatabaseSecretRef.describe(
      'The Secret with the connection to the relational database. `sslmodeSecret` chooses TLS; without it the mode is `prefer`: plain text if the server offers no TLS, and no certificate is verified.',
    ),
    models: listBy('identifier', ModelEntry, 512).default([]).describe('The models that the instance serves.'),
    workload: Workload.prefault({}).describe('Where the gateway of this instance runs.'),
    httpRoute: HTTPRoute.optional().describe(
      'An HTTPRoute of Gateway API, `<name>-gateway`, through which clients outside the cluster reach the gateway: all paths. At most one of `httpRoute` and `ingress`.',
    ),
    ingress: Ingress.optional().describe(
      'An Ingress, `<name>-gateway`, through which clients outside the cluster reach the gateway: all paths.',
    ),
    routing: Routing.prefault({}).describe('How requests reach the model entries.'),
    allowedNamespaces: AllowedNamespaces.prefault({}).describe('The namespaces that may refer to this instance.'),
    keyPolicies: KeyPolicies.optional().describe(
      'Policies for the VirtualKeys of namespaces. For each namespace the first policy applies whose `namespaceSelector` matches its labels, and no other; without a match there is none.',
    ),
    keyValueInStatus: choice('Full', 'Redacted').describe(
      'Whether `status.keyValue` of a VirtualKey shows the key value to everybody who may read VirtualKeys. Its Secret always has the value. On a cluster that people share, use `Redacted`.',
    ),
    storeResponses: z
      .boolean()
      .default(false)
      .describe(
        'Whether providers may store what VirtualKeys send, and requests may refer to it. While false the gateway sends `store: false`, and refuses `previous_response_id`, `item_reference` and file ids. While true a VirtualKey continues its own responses only; file ids are still refused.',
      ),
    blockedMessage: text(512)
      .optional()
      .describe(
        'A line for people, at the end of each refusal of the gateway that a key or its budget causes, e.g. `Ask in #ai-platform.`',
      ),
    paused: z.boolean().default(false).describe('While true only deletion is acted on; what runs continues.'),
  }),
  ...routeRules,
);
export type GatewayInstanceSpec = z.output<typeof GatewayInstanceSpec>;

const ModelStatus = z.object({
  modelName: FreeText.describe('The name that clients use.'),
  identifier: FreeText.describe('The model entry.'),
  ready: z.boolean().describe('Whether the model entry can serve.'),
  reason: z.string().max(1024).optional().describe('Why not, in one CamelCase word.'),
});

const KeyCount = z.object({
  total: z.int().min(0).optional().describe('VirtualKeys that refer to this instance.'),
  active: z.int().min(0).optional().describe('Those of them that work.'),
});

const NamespaceSpend = z.object({
  name: text(63).describe('The namespace.'),
  policy: text(63).describe('Its key policy.'),
  maxBudget: Spend.describe('`perNamespace.maxBudget` of the policy.'),
  currentSpend: Spend.describe('Dollars that all VirtualKeys of the namespace have spent in the current window.'),
  budgetResetDate: Timestamp.describe('When the current window ends, RFC 3339.'),
});

export const GatewayInstanceStatus = z.object({
  ...observedFields,
  url: text(2048)
    .optional()
    .describe(
      'The base address of the proxy, to which `/chat/completions` is added. With `httpRoute` or `ingress` it is their `url` from the first time that `RouteReady` is True until the field is removed.',
    ),
  internalURL: text(2048).optional().describe('The base address inside the cluster; for `External`, `workload.url`.'),
  models: listBy('identifier', ModelStatus, 512).optional().describe('The model entries and whether each can serve.'),
  keys: KeyCount.optional().describe('How many keys there are.'),
  namespaces: listBy('name', NamespaceSpend, 500)
    .optional()
    .describe(
      'What namespaces with a `perNamespace` budget have spent: at most 500, those that have spent the largest shares.',
    ),
  snapshotHash: text(128).optional().describe('Names the compiled configuration that every replica serves.'),
  workloadType: z
    .enum(['Knative', 'Deployment', 'External', 'Local'])
    .optional()
    .describe('What `workload.type: Auto` was decided to be, once; `Local` is the local stack.'),
});
export type GatewayInstanceStatus = z.output<typeof GatewayInstanceStatus>;

export type GatewayInstance = KubeObject<
  typeof INSTANCE_API_VERSION,
  'GatewayInstance',
  GatewayInstanceSpec,
  GatewayInstanceStatus
>;

export const schemas = { spec: GatewayInstanceSpec, status: GatewayInstanceStatus, nameRule: instanceName };
