// `spec.httpRoute` and `spec.ingress` of an instance: how clients outside the cluster reach its gateway.
import * as z from 'zod';
import { listOf, type Rule, withRule } from '../validation/rule.ts';
import { Address, Annotations, choice, matching, Name, Namespace } from './shared-fields.ts';
import type { Workload } from './workload.ts';

const Hostname = matching(
  /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u,
  253,
  'must be a host name in lower-case letters, e.g. "llm.example.com" or "*.example.com"',
);

const routeUrl = (host: string) =>
  Address.optional().describe(
    `The address for clients: \`status.url\` once the object works for the first time. Default: \`https://\` and ${host}.`,
  );

const ParentRef = z.object({
  name: Name.describe('Name of the Gateway.'),
  namespace: Namespace.optional().describe('Namespace of the Gateway. Default: that of the instance.'),
  sectionName: Name.optional().describe('Name of one of its listeners. Default: all that take the host names.'),
});

const isFilled = 'must have at least one entry; add one';

export const HTTPRoute = withRule(
  z.object({
    parentRefs: withRule(listOf(ParentRef, 8), {
      id: 'NoParents',
      cel: 'size(self) > 0',
      isMet: (self) => self.length > 0,
      message: isFilled,
    }).describe('The Gateways that take the route, as in Gateway API.'),
    hostnames: withRule(listOf(Hostname, 16), {
      id: 'NoHostnames',
      cel: 'size(self) > 0',
      isMet: (self) => self.length > 0,
      message: isFilled,
    }).describe('The host names of the requests, e.g. `llm.example.com`.'),
    url: routeUrl('the first host name'),
    timeouts: choice('FromRouting', 'None').describe(
      "`FromRouting`: the route's request timeout is `routing.timeouts.total` plus 30 s. `None`: the route has no timeouts, for a controller that refuses routes with timeouts, such as that of GKE.",
    ),
  }),
  {
    id: 'WildcardNeedsUrl',
    cel: "has(self.url) || size(self.hostnames) == 0 || !self.hostnames[0].startsWith('*')",
    isMet: ({ url, hostnames }) => url !== undefined || hostnames[0]?.startsWith('*') !== true,
    message: 'the first host name is a wildcard; add url, the address for clients',
    at: 'url',
  },
);
export type HTTPRoute = z.output<typeof HTTPRoute>;

export const Ingress = withRule(
  z.object({
    ingressClassName: Name.optional().describe(
      "The class, which decides the controller. Default: the cluster's default class.",
    ),
    host: Hostname.describe('The host name of the requests.'),
    tlsSecretName: Name.optional().describe(
      'Name of the Secret with the certificate, in the namespace of the instance. Default: the controller has one.',
    ),
    annotations: Annotations.optional().describe(
      "Annotations of the Ingress, e.g. the controller's timeouts and body size.",
    ),
    url: routeUrl('`host`'),
  }),
  {
    id: 'WildcardNeedsUrl',
    cel: "has(self.url) || !self.host.startsWith('*')",
    isMet: ({ url, host }) => url !== undefined || !host.startsWith('*'),
    message: 'the host is a wildcard; add url, the address for clients',
    at: 'url',
  },
);
export type Ingress = z.output<typeof Ingress>;

interface RouteFields {
  readonly workload: Workload;
  readonly httpRoute?: HTTPRoute | undefined;
  readonly ingress?: Ingress | undefined;
}

/** A gateway that runs elsewhere has its own address, and Knative has its DomainMappings. */
const ofDeployment = (field: 'httpRoute' | 'ingress'): Rule<RouteFields> => ({
  id: 'RouteNotSupported',
  cel: `!has(self.${field}) || !(self.workload.type in ['External', 'Knative'])`,
  isMet: ({ workload, ...routes }) =>
    routes[field] === undefined || (workload.type !== 'External' && workload.type !== 'Knative'),
  message:
    'works with a Deployment only; remove it, or set workload.type to Deployment. For External set workload.url; on Knative create a DomainMapping',
  at: field,
});

/** Rules about the fields of a spec. */
export const routeRules: ReadonlyArray<Rule<RouteFields>> = [
  {
    id: 'OneRoute',
    cel: '!(has(self.httpRoute) && has(self.ingress))',
    isMet: ({ httpRoute, ingress }) => httpRoute === undefined || ingress === undefined,
    message: 'may not be set beside httpRoute; remove one of the two',
    at: 'ingress',
  },
  ofDeployment('httpRoute'),
  ofDeployment('ingress'),
];
