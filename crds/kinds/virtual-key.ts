// The kind VirtualKey: an API key with a budget.
import * as z from 'zod';
import type { AUTH_API_VERSION } from '../names/group.ts';
import type { KubeObject } from '../names/object-meta.ts';
import { immutable, inAll, listBy, mapOf, setOf, text, withRule } from '../validation/rule.ts';
import {
  DURATION,
  isDurationInCel,
  isMoneyInCel,
  MONEY,
  nanoInCel,
  nanoOf,
  secondsInCel,
  secondsOf,
} from '../validation/units.ts';
import {
  Annotations,
  budgetWindows,
  ConnectionRef,
  choice,
  Duration,
  FreeText,
  Labels,
  LocalRef,
  limits,
  Money,
  modelNames,
  Name,
  observedFields,
  Spend,
  Timestamp,
} from './shared-fields.ts';

const secretKeyNames = { pattern: /^[-._a-zA-Z0-9]+$/, max: 253, form: 'of letters, digits, `-`, `_` and `.`' };

/** Marks of a template: an address of 2,048 characters takes the place of each, and a Secret has at most 1 MiB. */
const MAX_MARKS = 64;

const SecretTemplate = withRule(
  z.object({
    name: Name.optional().describe('Name of the Secret. Default: `<name>-key`.'),
    labels: Labels.optional().describe(
      'Labels of the Secret: without a prefix (not `owner`, not `grafana_…`), with `app.kubernetes.io/`, or with one that the operator allows (`secretMetadataPrefixes` of the chart).',
    ),
    annotations: Annotations.optional().describe('Annotations of the Secret, with the same prefixes.'),
    data: withRule(
      inAll(16_384, mapOf(text(4096), secretKeyNames)),
      {
        id: 'SecretKeyIsTaken',
        cel: "!('key' in self)",
        isMet: (self) => !Object.hasOwn(self, 'key'),
        message: 'may not have a key `key`, which always holds the key value; give it another name',
      },
      {
        id: 'TooManyMarks',
        cel: `self.map(name, self[name].split('\${').size() - 1).sum() <= ${MAX_MARKS}`,
        isMet: (self) => Object.values(self).join(' ').split('${').length <= MAX_MARKS + 1,
        message: `may have at most ${MAX_MARKS} \`\${\` in all its texts; write fewer \`\${key}\`, \`\${baseURL}\` and \`\${internalURL}\``,
      },
    )
      .optional()
      .describe(
        // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write in the template
        'Further keys of the Secret: name to text, in which `${key}`, `${baseURL}` and `${internalURL}` stand for the key value, `status.url` and `status.internalURL` of the instance, e.g. `OPENAI_API_KEY: ${key}`.',
      ),
  }),
  {
    id: 'HelmReleaseName',
    cel: "!has(self.name) || !self.name.startsWith('sh.helm.release.')",
    isMet: ({ name }) => name?.startsWith('sh.helm.release.') !== true,
    message:
      'must not begin with `sh.helm.release.`, because Helm takes such a Secret for a release; choose another name',
    at: 'name',
  },
);

const Rotation = withRule(
  z.object({
    every: Duration.describe('How old a key value gets before a new one replaces it.'),
    overlap: Duration.optional().describe(
      'How long the old value works beside the new one. Default: a tenth of `every`, at most a day.',
    ),
  }),
  {
    id: 'OverlapTooLong',
    cel:
      `!has(self.overlap) || !${isDurationInCel('self.overlap')} || !${isDurationInCel('self.every')} || ` +
      `${secondsInCel('self.overlap')} < ${secondsInCel('self.every')}`,
    isMet: ({ every, overlap }) =>
      overlap === undefined ||
      !DURATION.test(overlap) ||
      !DURATION.test(every) ||
      secondsOf(overlap) < secondsOf(every),
    message: 'must be shorter than every; shorten overlap or lengthen every',
    at: 'overlap',
  },
);

const WindowBudget = z.object({
  maxBudget: Money.describe('Maximum dollars that the key may spend in one window. `"0"` means none.'),
  budgetDuration: Duration.describe(
    'Length of the window. Each length is allowed once; the length of `spec.budgetDuration` causes a warning.',
  ),
});

const ModelBudget = z.object({
  maxBudget: Money.describe('Maximum dollars that the key may spend on the model in one window. `"0"` means none.'),
  budgetDuration: Duration.describe('Length of the window.'),
});

export const VirtualKeySpec = withRule(
  z.object({
    keyAlias: immutable(FreeText, {
      id: 'KeyAliasIsImmutable',
      message: 'cannot be changed; create a new VirtualKey with the new alias, then delete this one',
    }).describe('Names the key; once on each instance. Never changes.'),
    models: modelNames('key'),
    maxBudget: Money.describe(
      'Maximum dollars that the key may spend in one window, in quotes, e.g. `"12.50"`. `"0"` means none.',
    ),
    budgetDuration: Duration.describe(
      'Length of the budget window: a number and `s`, `m`, `h`, `d`, `w` or `mo`, e.g. `30d`. `mo` is 30 days, or a calendar month with `budgetWindow: Calendar`.',
    ),
    budgets: listBy('budgetDuration', WindowBudget, 8)
      .optional()
      .describe(
        'Budgets for further windows: a request spends from `maxBudget` and from each of these, e.g. `5` dollars in `1h` beside `100` in `30d`.',
      ),
    connectionRef: immutable(ConnectionRef, {
      id: 'ConnectionRefIsImmutable',
      message: 'cannot be changed; create a new VirtualKey for the other instance, then delete this one',
    }).describe('The instance that the key belongs to. Never changes.'),
    duration: Duration.optional().describe('How long the key lives; sets `status.expiryDate`. Default: for ever.'),
    softBudget: Money.optional().describe(
      'When the spend reaches these dollars, the key is reported and continues working; at most `maxBudget`.',
    ),
    blocked: z.boolean().default(false).describe('While true the key does not work.'),
    ...limits,
    modelMaxBudget: inAll(4096, mapOf(ModelBudget, { max: 256, form: 'of 1 to 256 characters' }))
      .optional()
      .describe(
        'Budgets for single models, by `modelName`: a request spends from both this and `maxBudget`. Windows begin together.',
      ),
    userRef: LocalRef.optional().describe('The User whose budget the key spends too.'),
    teamRef: LocalRef.optional().describe('The Team whose budget the key spends too.'),
    tags: inAll(2048, setOf(FreeText, 64)).optional().describe('Words for reports of spend.'),
    metadata: inAll(2048, mapOf(text(1024), { max: 256, form: 'of 1 to 256 characters' }))
      .optional()
      .describe('Names and values of your own, for reports and logs; never secret.'),
    ...budgetWindows('key'),
    secretTemplate: SecretTemplate.optional().describe('What the Secret with the key looks like.'),
    rotation: Rotation.optional().describe('Replaces the key value regularly. Default: never.'),
    deletionPolicy: choice('Delete', 'Retain').describe(
      'When the VirtualKey is deleted: with `Delete` its value ends; with `Retain` its value continues to work, and another VirtualKey can adopt it.',
    ),
  }),
  {
    id: 'SoftBudgetAboveMaxBudget',
    cel:
      `!has(self.softBudget) || !${isMoneyInCel('self.softBudget')} || !${isMoneyInCel('self.maxBudget')} || ` +
      `${nanoInCel('self.softBudget')} <= ${nanoInCel('self.maxBudget')}`,
    isMet: ({ softBudget, maxBudget }) =>
      softBudget === undefined ||
      !MONEY.test(softBudget) ||
      !MONEY.test(maxBudget) ||
      nanoOf(softBudget) <= nanoOf(maxBudget),
    message: 'must be at most maxBudget; lower softBudget or raise maxBudget',
    at: 'softBudget',
  },
);
export type VirtualKeySpec = z.output<typeof VirtualKeySpec>;

const WindowSpend = z.object({
  budgetDuration: text(16).describe('Length of the window.'),
  currentSpend: Spend.describe('Dollars spent in the current window.'),
  budgetResetDate: Timestamp.describe('When the current window ends, RFC 3339.'),
});

export const VirtualKeyStatus = z.object({
  ...observedFields,
  keySecretRef: z.string().max(253).optional().describe('Name of the Secret that holds the key, under its key `key`.'),
  keyValue: text(512)
    .optional()
    .describe('The key value; with `keyValueInStatus: Redacted` of the instance, its last four characters only.'),
  currentSpend: Spend.optional().describe('Dollars spent in the current window, a decimal string at full precision.'),
  isActive: z.boolean().optional().describe('Whether the key works. The condition `Ready` shows why not.'),
  expiryDate: Timestamp.optional().describe('When the key expires, RFC 3339; absent without `spec.duration`.'),
  keyID: z.string().max(128).optional().describe('Names the key in logs and in the ledger; not secret.'),
  budgetResetDate: Timestamp.optional().describe('When the current budget window ends, RFC 3339.'),
  budgets: listBy('budgetDuration', WindowSpend, 8)
    .optional()
    .describe('Spend in the current windows of `spec.budgets`.'),
  policy: text(63).optional().describe('The key policy of the namespace on this instance; absent if none applies.'),
  lastSyncTime: Timestamp.optional().describe('When something of this status last changed, RFC 3339.'),
});
export type VirtualKeyStatus = z.output<typeof VirtualKeyStatus>;

export type VirtualKey = KubeObject<typeof AUTH_API_VERSION, 'VirtualKey', VirtualKeySpec, VirtualKeyStatus>;

export const schemas = { spec: VirtualKeySpec, status: VirtualKeyStatus };
