// What can a schema not say? Every rule of our kinds, once in CEL and once in TypeScript.
// Without zod, so that judging a good object needs none; what a rule is asked about may lack its defaults.
import { isMoneyInCel, nanoInCel, nanoOf } from './nano.ts';
import type { Rule } from './rule.ts';
import { isDurationInCel, MAX_SECONDS, secondsInCel, secondsOf } from './seconds.ts';
import { isWithin } from './within.ts';

const INSTANCE_NAME = /^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** A Service, a ConfigMap and a path of the gateway are named after the instance. */
export const instanceName: Rule<string> = {
  id: 'InstanceName',
  cel: `self.metadata.name.matches('${INSTANCE_NAME.source}')`,
  message:
    'is not the name of an instance; write at most 40 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`',
  holds: (name) => INSTANCE_NAME.test(name),
};

export const durationAtMost: Rule<string> = {
  id: 'DurationTooLong',
  cel: `!${isDurationInCel('self')} || ${secondsInCel('self')} <= ${MAX_SECONDS}`,
  message: 'is longer than 36525 days; write a shorter duration',
  holds: (self) => secondsOf(self) <= MAX_SECONDS,
};

// VirtualKey

export const keyAliasStays: Rule<string> = {
  id: 'KeyAliasIsImmutable',
  cel: 'self == oldSelf',
  message: 'is immutable, a key keeps its alias; create another VirtualKey with the new alias and delete this one',
  holds: (self, old) => self === old,
};

interface Connection {
  readonly instanceRef: { readonly name: string; readonly namespace: string };
}

export const connectionStays: Rule<Connection> = {
  id: 'ConnectionRefIsImmutable',
  cel: 'self == oldSelf',
  message:
    'is immutable, a key stays on its instance; create another VirtualKey for the other instance and delete this one',
  holds: (self, old) =>
    self.instanceRef.name === old?.instanceRef.name && self.instanceRef.namespace === old.instanceRef.namespace,
};

export const softBudgetBelowMax: Rule<{ readonly softBudget?: string | undefined; readonly maxBudget: string }> = {
  id: 'SoftBudgetAboveMaxBudget',
  cel:
    `!has(self.softBudget) || !${isMoneyInCel('self.softBudget')} || !${isMoneyInCel('self.maxBudget')} || ` +
    `${nanoInCel('self.softBudget')} <= ${nanoInCel('self.maxBudget')}`,
  message: 'softBudget is above maxBudget; lower softBudget or raise maxBudget',
  at: 'softBudget',
  reads: ['softBudget', 'maxBudget'],
  holds: (self) => self.softBudget === undefined || nanoOf(self.softBudget) <= nanoOf(self.maxBudget),
};

export const overlapBelowPeriod: Rule<{ readonly every: string; readonly overlap?: string | undefined }> = {
  id: 'OverlapTooLong',
  cel:
    `!has(self.overlap) || !${isDurationInCel('self.overlap')} || !${isDurationInCel('self.every')} || ` +
    `${secondsInCel('self.overlap')} < ${secondsInCel('self.every')}`,
  message: 'overlap must be shorter than every; shorten overlap or lengthen every',
  at: 'overlap',
  reads: ['overlap', 'every'],
  holds: (self) => self.overlap === undefined || secondsOf(self.overlap) < secondsOf(self.every),
};

export const keyEntryIsTaken: Rule<Readonly<Record<string, unknown>>> = {
  id: 'KeyEntryIsTaken',
  cel: "!('key' in self)",
  message: 'the entry `key` always holds the key itself; give this one another name',
  holds: (self) => !Object.hasOwn(self, 'key'),
};

// User: what `autoCreateKey` cannot do without

type Needed = 'keyAlias' | 'maxBudget' | 'budgetDuration';
type NeedsOfKey = { readonly autoCreateKey?: boolean } & { readonly [field in Needed]?: string | undefined };

const keyNeeds = (field: Needed): Rule<NeedsOfKey> => ({
  id: 'AutoCreateKeyNeedsField',
  cel: `!self.autoCreateKey || has(self.${field})`,
  message: `autoCreateKey is true; add ${field}, which the key takes from the user`,
  at: field,
  reads: ['autoCreateKey', field],
  holds: (self) => self.autoCreateKey !== true || self[field] !== undefined,
});
export const keyNeedsAlias = keyNeeds('keyAlias');
export const keyNeedsBudget = keyNeeds('maxBudget');
export const keyNeedsWindow = keyNeeds('budgetDuration');

// GatewayInstance

interface Entry {
  readonly requiresAuth: boolean;
  readonly modelCredentials?: unknown;
}

export const credentialsRequired: Rule<Entry> = {
  id: 'CredentialsRequired',
  cel: '!self.requiresAuth || has(self.modelCredentials)',
  message:
    'requiresAuth is true; add modelCredentials with the name of the Secret and its keys, or set requiresAuth to false',
  at: 'modelCredentials',
  reads: ['requiresAuth', 'modelCredentials'],
  holds: (self) => !self.requiresAuth || self.modelCredentials !== undefined,
};

export const credentialsUnused: Rule<Entry> = {
  id: 'CredentialsUnused',
  cel: 'self.requiresAuth || !has(self.modelCredentials)',
  message: 'requiresAuth is false; remove modelCredentials, or set requiresAuth to true',
  at: 'modelCredentials',
  reads: ['requiresAuth', 'modelCredentials'],
  holds: (self) => self.requiresAuth || self.modelCredentials === undefined,
};

export const requirementValues: Rule<{
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}> = {
  id: 'ValuesOfRequirement',
  cel: "(self.operator == 'In' || self.operator == 'NotIn') == (has(self.values) && size(self.values) > 0)",
  message: 'values do not go with the operator; add values to In and NotIn, remove them from Exists and DoesNotExist',
  at: 'values',
  holds: (self) => ['In', 'NotIn'].includes(self.operator) === (self.values ?? []).length > 0,
};

export const selectorRequired: Rule<{ readonly from?: string; readonly selector?: unknown }> = {
  id: 'SelectorRequired',
  cel: "self.from != 'Selector' || has(self.selector)",
  message: 'from is Selector; add selector with matchLabels or matchExpressions, or choose All or Same',
  at: 'selector',
  reads: ['from', 'selector'],
  holds: (self) => self.from !== 'Selector' || self.selector !== undefined,
};

export const externalNeedsUrl: Rule<{ readonly type?: string; readonly url?: unknown }> = {
  id: 'ExternalNeedsUrl',
  cel: "self.type != 'External' || has(self.url)",
  message: 'type is External; add url, the address of the gateway, or choose another type',
  at: 'url',
  reads: ['type', 'url'],
  holds: (self) => self.type !== 'External' || self.url !== undefined,
};

export const scaleInOrder: Rule<{ readonly min?: number | undefined; readonly max?: number | undefined }> = {
  id: 'ScaleMinAboveMax',
  cel: '!has(self.min) || !has(self.max) || self.min <= self.max',
  message: 'min is above max; lower min or raise max',
  at: 'min',
  reads: ['min', 'max'],
  holds: (self) => self.min === undefined || self.max === undefined || self.min <= self.max,
};

export const oneValueSource: Rule<{ readonly secretKeyRef?: unknown; readonly configMapKeyRef?: unknown }> = {
  id: 'OneValueSource',
  cel: 'has(self.secretKeyRef) != has(self.configMapKeyRef)',
  message: 'there is not exactly one source; set one of secretKeyRef and configMapKeyRef',
  holds: (self) => (self.secretKeyRef === undefined) !== (self.configMapKeyRef === undefined),
};

export const oneValue: Rule<{ readonly value?: unknown; readonly valueFrom?: unknown }> = {
  id: 'OneValue',
  cel: '!(has(self.value) && has(self.valueFrom))',
  message: 'value and valueFrom are both set; remove one of them',
  at: 'valueFrom',
  holds: (self) => self.value === undefined || self.valueFrom === undefined,
};

// Names in maps

interface Names {
  readonly pattern?: RegExp;
  readonly longest: number;
  /** What a good name looks like, for people. */
  readonly form: string;
}

const namesLike = ({ pattern, longest, form }: Names): Rule<Readonly<Record<string, unknown>>> => ({
  id: 'EntryName',
  cel: `self.all(name, size(name) >= 1 && size(name) <= ${longest}${pattern === undefined ? '' : ` && name.matches('${pattern.source}')`})`,
  message: `has an entry with a bad name; ${form}`,
  holds: (self) =>
    Object.keys(self).every(
      (name) => name.length >= 1 && isWithin(longest, name) && (pattern === undefined || pattern.test(name)),
    ),
});

export const labelNames = namesLike({
  pattern:
    /^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
  longest: 317,
  form: 'write it like "team" or "example.com/team"',
});
export const dataEntryNames = namesLike({
  pattern: /^[-._a-zA-Z0-9]+$/,
  longest: 253,
  form: 'write letters, digits, `-`, `_` and `.`',
});
export const credentialNames = namesLike({ longest: 63, form: 'write 1 to 63 characters, e.g. `apiKey`' });
export const resourceNames = namesLike({ longest: 253, form: 'write e.g. `cpu` or `memory`' });
export const modelNames = namesLike({ longest: 256, form: 'write a `modelName` of the instance' });
export const metadataNames = namesLike({ longest: 256, form: 'write 1 to 256 characters' });
