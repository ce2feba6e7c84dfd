// GatewayInstances: good ones, and the violations of the others.
import { accept, type Case, refuse } from './case.ts';

const entry = (identifier: string) => ({
  modelName: 'm',
  identifier,
  requiresAuth: false,
  gatewayParams: { model: 'p/m' },
});
const route = { parentRefs: [{ name: 'public' }], hostnames: ['llm.example.com'] };
const first = 'spec.models.0';
const params = 'spec.models[0].gatewayParams';

export const gatewayInstances: readonly Case[] = [
  accept('GatewayInstance', 'with only what is required'),
  accept('GatewayInstance', 'without entries', { 'spec.models': [] }),
  accept('GatewayInstance', 'that leaves out models', { 'spec.models': undefined }),
  accept('GatewayInstance', 'of 40 characters', { 'metadata.name': `a${'b'.repeat(38)}c` }),
  refuse('GatewayInstance', 'of 41 characters', { 'metadata.name': `a${'b'.repeat(39)}c` }, [
    'InstanceName',
    'metadata.name',
  ]),
  refuse('GatewayInstance', 'whose name begins with a digit', { 'metadata.name': '2gpt' }, [
    'InstanceName',
    'metadata.name',
  ]),
  refuse('GatewayInstance', 'whose name has a dot', { 'metadata.name': 'my.proxy' }, ['InstanceName', 'metadata.name']),
  refuse('GatewayInstance', 'without a spec', { spec: undefined }, ['Required', 'spec']),
  refuse('GatewayInstance', 'whose spec is a list', { spec: [] }, ['WrongType', 'spec']),
  refuse('GatewayInstance', 'without a store', { 'spec.redisSecretRef': undefined }, [
    'Required',
    'spec.redisSecretRef',
  ]),
  refuse('GatewayInstance', 'whose database Secret has no name', { 'spec.databaseSecretRef.nameRef': '' }, [
    'Malformed',
    'spec.databaseSecretRef.nameRef',
  ]),
  refuse(
    'GatewayInstance',
    'whose password is in the entry of the user name',
    { 'spec.databaseSecretRef.keys.passwordSecret': 'username' },
    ['PasswordIsUsername', 'spec.databaseSecretRef.keys.passwordSecret'],
  ),
  refuse('GatewayInstance', 'with a blank entry name', { 'spec.databaseSecretRef.keys.hostSecret': ' ' }, [
    'Malformed',
    'spec.databaseSecretRef.keys.hostSecret',
  ]),
  accept('GatewayInstance', 'whose database port is in an entry', {
    'spec.databaseSecretRef.keys.portSecret': 'port',
  }),
  refuse('GatewayInstance', 'that repeats an identifier', { 'spec.models.1.identifier': 'gpt-4o-eu' }, [
    'Duplicate',
    'spec.models[1].identifier',
  ]),
  refuse(
    'GatewayInstance',
    'with an entry that requires credentials and names none',
    { [`${first}.modelCredentials`]: undefined },
    ['CredentialsRequired', 'spec.models[0].modelCredentials'],
  ),
  refuse(
    'GatewayInstance',
    'with an entry that names credentials and requires none',
    { [`${first}.requiresAuth`]: false },
    ['CredentialsUnused', 'spec.models[0].modelCredentials'],
  ),
  refuse('GatewayInstance', 'with credentials that map nothing', { [`${first}.modelCredentials.keys`]: {} }, [
    'TooLarge',
    'spec.models[0].modelCredentials.keys',
  ]),
  refuse('GatewayInstance', 'with a credential without a name', { [`${first}.modelCredentials.keys`]: { '': 'key' } }, [
    'EntryName',
    'spec.models[0].modelCredentials.keys',
  ]),
  refuse('GatewayInstance', 'with an entry without requiresAuth', { [`${first}.requiresAuth`]: undefined }, [
    'Required',
    'spec.models[0].requiresAuth',
  ]),
  refuse('GatewayInstance', 'with requiresAuth in quotes', { [`${first}.requiresAuth`]: 'true' }, [
    'WrongType',
    'spec.models[0].requiresAuth',
  ]),
  refuse('GatewayInstance', 'with a model without a provider', { [`${first}.gatewayParams.model`]: 'gpt-4o' }, [
    'Malformed',
    `${params}.model`,
  ]),
  refuse('GatewayInstance', 'with a provider without a model', { [`${first}.gatewayParams.model`]: 'openai/' }, [
    'Malformed',
    `${params}.model`,
  ]),
  refuse(
    'GatewayInstance',
    'with a model without a provider before the slash',
    { [`${first}.gatewayParams.model`]: '/gpt-4o' },
    ['Malformed', `${params}.model`],
  ),
  refuse('GatewayInstance', 'with a blank in a model', { [`${first}.gatewayParams.model`]: 'openai/gpt 4o' }, [
    'Malformed',
    `${params}.model`,
  ]),
  accept('GatewayInstance', 'with slashes in a base model', {
    [`${first}.gatewayParams.model`]: 'openrouter/meta/llama-3.1:free',
  }),
  refuse('GatewayInstance', 'without gatewayParams', { [`${first}.gatewayParams`]: undefined }, [
    'Required',
    'spec.models[0].gatewayParams',
  ]),
  accept('GatewayInstance', 'with everything that gatewayParams takes', {
    [`${first}.gatewayParams`]: {
      model: 'openai/gpt-4o',
      customLLMProvider: 'azure',
      apiBase: 'http://127.0.0.1:8080/v1',
      weight: 3,
      priority: 0,
      rpm: 100,
      tpm: 100_000,
      timeout: '90s',
      maxInputTokens: 128_000,
      maxOutputTokens: 16_384,
      inputCostPerMillionTokens: '2.50',
      outputCostPerMillionTokens: '10',
      cachedInputCostPerMillionTokens: '1.25',
      cacheWriteCostPerMillionTokens: '0',
      toolCosts: { webSearch: '0.01' },
    },
  }),
  refuse('GatewayInstance', 'with a weight of 0', { [`${first}.gatewayParams.weight`]: 0 }, [
    'TooSmall',
    `${params}.weight`,
  ]),
  refuse('GatewayInstance', 'with half a weight', { [`${first}.gatewayParams.weight`]: 0.5 }, [
    'WrongType',
    `${params}.weight`,
  ]),
  refuse('GatewayInstance', 'with an address that is none', { [`${first}.gatewayParams.apiBase`]: 'ftp://host' }, [
    'Malformed',
    `${params}.apiBase`,
  ]),
  refuse(
    'GatewayInstance',
    'with a password in an address, where everybody reads it',
    { [`${first}.gatewayParams.apiBase`]: 'https://user:password@host/v1' },
    ['Malformed', `${params}.apiBase`],
  ),
  accept('GatewayInstance', 'with an @ behind the host of an address', {
    [`${first}.gatewayParams.apiBase`]: 'http://host:8000/@me?v=1',
  }),
  refuse(
    'GatewayInstance',
    "with a password in its gateway's address",
    { 'spec.workload': { type: 'External', url: 'https://user@host' } },
    ['Malformed', 'spec.workload.url'],
  ),
  refuse(
    'GatewayInstance',
    'with a price that is a number',
    { [`${first}.gatewayParams.inputCostPerMillionTokens`]: 2.5 },
    ['WrongType', `${params}.inputCostPerMillionTokens`],
  ),
  refuse('GatewayInstance', 'with a negative price', { [`${first}.gatewayParams.outputCostPerMillionTokens`]: '-1' }, [
    'Malformed',
    `${params}.outputCostPerMillionTokens`,
  ]),
  refuse('GatewayInstance', 'with a timeout of no unit', { [`${first}.gatewayParams.timeout`]: '90' }, [
    'Malformed',
    `${params}.timeout`,
  ]),
  refuse('GatewayInstance', 'with a modelName of blanks', { [`${first}.modelName`]: '  ' }, [
    'Malformed',
    'spec.models[0].modelName',
  ]),
  accept('GatewayInstance', 'with any letters in a modelName', { [`${first}.modelName`]: 'Größe "L"/深い \\ x' }),
  accept('GatewayInstance', 'with 512 entries', {
    'spec.models': Array.from({ length: 512 }, (_, index) => entry(`e${index}`)),
  }),
  refuse(
    'GatewayInstance',
    'with 513 entries',
    { 'spec.models': Array.from({ length: 513 }, (_, index) => entry(`e${index}`)) },
    ['TooLarge', 'spec.models'],
  ),
  refuse('GatewayInstance', 'that is External without an address', { 'spec.workload.type': 'External' }, [
    'ExternalNeedsUrl',
    'spec.workload.url',
  ]),
  accept('GatewayInstance', 'that is External with an address', {
    'spec.workload': { type: 'External', url: 'https://gateway.example.com/ai' },
  }),
  refuse(
    'GatewayInstance',
    'whose address has a query',
    { 'spec.workload': { type: 'External', url: 'https://host/?a' } },
    ['Malformed', 'spec.workload.url'],
  ),
  refuse('GatewayInstance', 'of an unknown workload', { 'spec.workload.type': 'Lambda' }, [
    'NotInEnum',
    'spec.workload.type',
  ]),
  refuse('GatewayInstance', 'whose scale is upside down', { 'spec.workload.scale': { min: 3, max: 2 } }, [
    'ScaleMinAboveMax',
    'spec.workload.scale.min',
  ]),
  accept('GatewayInstance', 'whose scale is one number', { 'spec.workload.scale': { min: 2, max: 2 } }),
  accept('GatewayInstance', 'with everything that workload takes', {
    'spec.workload': {
      type: 'Deployment',
      image: 'registry.example.com/gateway@sha256:abc',
      scale: { min: 0, max: 10 },
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '0.5Gi' } },
      env: [
        { name: 'LOG_LEVEL', value: '' },
        { name: 'HTTPS_PROXY', valueFrom: { secretKeyRef: { name: 'proxy', key: 'url', optional: true } } },
        { name: 'REGION', valueFrom: { configMapKeyRef: { name: 'cluster', key: 'region' } } },
      ],
      podLabels: { team: 'search', 'example.com/tier': 'A_1.b', empty: '' },
      podAnnotations: { 'example.com/note': 'anything\nat all' },
      serviceAccountName: 'gateway',
    },
  }),
  refuse('GatewayInstance', 'with a bad label', { 'spec.workload.podLabels': { team: 'two words' } }, [
    'Malformed',
    'spec.workload.podLabels.team',
  ]),
  refuse('GatewayInstance', 'with a label of a bad name', { 'spec.workload.podLabels': { 'two words': 'x' } }, [
    'EntryName',
    'spec.workload.podLabels',
  ]),
  refuse('GatewayInstance', 'with a bad quantity', { 'spec.workload.resources.limits': { cpu: 'much' } }, [
    'Malformed',
    'spec.workload.resources.limits.cpu',
  ]),
  refuse(
    'GatewayInstance',
    'that sets a variable twice',
    {
      'spec.workload.env': [
        { name: 'A', value: '1' },
        { name: 'A', value: '2' },
      ],
    },
    ['Duplicate', 'spec.workload.env[1].name'],
  ),
  refuse(
    'GatewayInstance',
    'with two values for a variable',
    { 'spec.workload.env': [{ name: 'A', value: '1', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
    ['OneValue', 'spec.workload.env[0].valueFrom'],
  ),
  refuse('GatewayInstance', 'with a variable from nowhere', { 'spec.workload.env': [{ name: 'A', valueFrom: {} }] }, [
    'OneValueSource',
    'spec.workload.env[0].valueFrom',
  ]),
  accept('GatewayInstance', 'with everything that httpRoute takes', {
    'spec.httpRoute': {
      parentRefs: [
        { name: 'public', namespace: 'infra', sectionName: 'https' },
        { name: 'public' },
        { name: 'public' },
      ],
      hostnames: ['*.example.com', 'llm.example.com'],
      url: 'https://llm.example.com/ai',
      timeouts: 'None',
    },
  }),
  accept('GatewayInstance', 'with everything that ingress takes', {
    'spec.workload.type': 'Deployment',
    'spec.ingress': {
      ingressClassName: 'nginx',
      host: 'llm.example.com',
      tlsSecretName: 'llm-tls',
      annotations: { 'nginx.org/proxy-read-timeout': '610s' },
      url: 'https://llm.example.com',
    },
  }),
  accept('GatewayInstance', 'with an ingress of a host alone', { 'spec.ingress': { host: 'llm.example.com' } }),
  refuse(
    'GatewayInstance',
    'with httpRoute and ingress',
    { 'spec.httpRoute': route, 'spec.ingress': { host: 'llm.example.com' } },
    ['OneRoute', 'spec.ingress'],
  ),
  refuse(
    'GatewayInstance',
    'with an httpRoute on Knative',
    { 'spec.httpRoute': route, 'spec.workload.type': 'Knative' },
    ['RouteNotSupported', 'spec.httpRoute'],
  ),
  refuse(
    'GatewayInstance',
    'with an ingress to a gateway that runs elsewhere',
    {
      'spec.ingress': { host: 'llm.example.com' },
      'spec.workload': { type: 'External', url: 'https://llm.example.com' },
    },
    ['RouteNotSupported', 'spec.ingress'],
  ),
  {
    ...refuse(
      'GatewayInstance',
      'that becomes Knative beside an ingress',
      { 'spec.ingress': { host: 'llm.example.com' }, 'spec.workload.type': 'Knative' },
      ['RouteNotSupported', 'spec.ingress'],
    ),
    stored: { 'spec.ingress': { host: 'llm.example.com' } },
  },
  refuse('GatewayInstance', 'with an httpRoute of no Gateway', { 'spec.httpRoute': { ...route, parentRefs: [] } }, [
    'NoParents',
    'spec.httpRoute.parentRefs',
  ]),
  refuse('GatewayInstance', 'with an httpRoute of no host name', { 'spec.httpRoute': { ...route, hostnames: [] } }, [
    'NoHostnames',
    'spec.httpRoute.hostnames',
  ]),
  refuse(
    'GatewayInstance',
    'with an httpRoute of nine Gateways',
    { 'spec.httpRoute': { ...route, parentRefs: Array.from({ length: 9 }, (_, index) => ({ name: `g${index}` })) } },
    ['TooLarge', 'spec.httpRoute.parentRefs'],
  ),
  refuse(
    'GatewayInstance',
    'whose first host name is a wildcard, without an address',
    { 'spec.httpRoute': { ...route, hostnames: ['*.example.com', 'llm.example.com'] } },
    ['WildcardNeedsUrl', 'spec.httpRoute.url'],
  ),
  refuse(
    'GatewayInstance',
    'with a wildcard in its ingress, without an address',
    { 'spec.ingress': { host: '*.a.b' } },
    ['WildcardNeedsUrl', 'spec.ingress.url'],
  ),
  refuse('GatewayInstance', 'with an ingress of an address as host', { 'spec.ingress': { host: 'https://llm' } }, [
    'Malformed',
    'spec.ingress.host',
  ]),
  refuse('GatewayInstance', 'with an ingress without a host', { 'spec.ingress': { ingressClassName: 'nginx' } }, [
    'Required',
    'spec.ingress.host',
  ]),
  refuse(
    'GatewayInstance',
    'with a password in the address of its ingress',
    { 'spec.ingress': { host: 'llm.example.com', url: 'https://user:password@llm.example.com' } },
    ['Malformed', 'spec.ingress.url'],
  ),
  accept('GatewayInstance', 'without retries', { 'spec.routing.retries': 0 }),
  refuse('GatewayInstance', 'with negative retries', { 'spec.routing.retries': -1 }, [
    'TooSmall',
    'spec.routing.retries',
  ]),
  refuse('GatewayInstance', 'of an unknown strategy', { 'spec.routing.strategy': 'Random' }, [
    'NotInEnum',
    'spec.routing.strategy',
  ]),
  accept('GatewayInstance', 'with one timeout of its own', { 'spec.routing.timeouts.firstByte': '10s' }),
  refuse('GatewayInstance', 'with a timeout of zero', { 'spec.routing.timeouts.total': '0s' }, [
    'Malformed',
    'spec.routing.timeouts.total',
  ]),
  refuse(
    'GatewayInstance',
    'that selects namespaces without a selector',
    { 'spec.allowedNamespaces.from': 'Selector' },
    ['SelectorRequired', 'spec.allowedNamespaces.selector'],
  ),
  accept('GatewayInstance', 'that selects namespaces', {
    'spec.allowedNamespaces': {
      from: 'Selector',
      selector: {
        matchLabels: { 'kubernetes.io/metadata.name': 'ai' },
        matchExpressions: [
          { key: 'tier', operator: 'In', values: ['a', 'b'] },
          { key: 'off', operator: 'DoesNotExist' },
        ],
      },
    },
  }),
  refuse(
    'GatewayInstance',
    'that selects namespaces by a value in no list',
    {
      'spec.allowedNamespaces': { from: 'Selector', selector: { matchExpressions: [{ key: 'tier', operator: 'In' }] } },
    },
    ['ValuesOfRequirement', 'spec.allowedNamespaces.selector.matchExpressions[0].values'],
  ),
  refuse('GatewayInstance', 'with an unknown keyValueInStatus', { 'spec.keyValueInStatus': 'None' }, [
    'NotInEnum',
    'spec.keyValueInStatus',
  ]),
  accept('GatewayInstance', 'with nulls, which count as absent', {
    'spec.paused': null,
    'spec.workload': null,
    'spec.models.1.modelCredentials': null,
  }),
];
