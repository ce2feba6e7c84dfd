// VirtualKeys: good ones, and the violations of the others.
import { accept, type Case, refuse } from './case.ts';

const emoji = '🙂'.repeat(256);

const MARK = `\${baseURL}`;

/** `count` different texts of `length` characters, most of which JavaScript counts twice. */
const texts = (count: number, length: number) =>
  Array.from({ length: count }, (_, place) => `${place + 100}${'🙂'.repeat(length - 3)}`);
const mapTo = (text: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, place) => [`k${place + 100}`, text]));

/** Lists and maps with as many characters as they may have in all. */
const LARGEST: Readonly<Record<string, ReadonlyArray<string> | Readonly<Record<string, string>>>> = {
  'spec.models': texts(128, 256),
  'spec.tags': texts(8, 256),
  'spec.metadata': mapTo('🙂'.repeat(1020), 2),
  'spec.secretTemplate.annotations': mapTo('🙂'.repeat(2044), 8),
  'spec.secretTemplate.data': mapTo('🙂'.repeat(2044), 8),
};
const oneMore = (full: (typeof LARGEST)[string]) => (Array.isArray(full) ? [...full, 'x'] : { ...full, x: '' });

const BUDGET = { maxBudget: '1', budgetDuration: '1d' };
const LARGEST_BUDGETS = Object.fromEntries(texts(64, 64).map((name) => [name, BUDGET]));

export const virtualKeys: readonly Case[] = [
  accept('VirtualKey', 'with only what is required'),
  ...['keyAlias', 'maxBudget', 'budgetDuration', 'connectionRef'].map((field) =>
    refuse('VirtualKey', `without ${field}`, { [`spec.${field}`]: undefined }, ['Required', `spec.${field}`]),
  ),
  ...['12', '0.5', '12.50', '0', '1000000000', '1000000000.0', '999999999.999999999', '0.000000001'].map((amount) =>
    accept('VirtualKey', `of $${amount}`, { 'spec.maxBudget': amount }),
  ),
  ...[
    '.5',
    '5.',
    '012',
    '-1',
    '+1',
    '1e3',
    ' 1',
    '1 ',
    '1,5',
    '',
    'ten',
    '0x10',
    '1000000000.000000001',
    '1000000001',
    '0.0000000001',
    '１',
    '1\n',
  ].map((amount) =>
    refuse('VirtualKey', `of $${JSON.stringify(amount)}`, { 'spec.maxBudget': amount }, [
      'Malformed',
      'spec.maxBudget',
    ]),
  ),
  refuse('VirtualKey', 'whose maxBudget is a number', { 'spec.maxBudget': 10 }, ['WrongType', 'spec.maxBudget']),
  ...['1s', '90m', '24h', '30d', '1w', '1mo', '36525d', '876600h', '3155760000s', '52596000m', '5217w', '1217mo'].map(
    (duration) => accept('VirtualKey', `of a window of ${duration}`, { 'spec.budgetDuration': duration }),
  ),
  ...['30', 'd', '0d', '-1d', '1.5d', '1 d', '030d', '1y', '1D', 'P30D', '1d12h', ''].map((duration) =>
    refuse('VirtualKey', `of a window of ${JSON.stringify(duration)}`, { 'spec.budgetDuration': duration }, [
      'Malformed',
      'spec.budgetDuration',
    ]),
  ),
  ...['36526d', '876601h', '3155760001s', '52596001m', '5218w', '1218mo', '99999999999999d'].map((duration) =>
    refuse('VirtualKey', `of a window of ${duration}`, { 'spec.budgetDuration': duration }, [
      'DurationTooLong',
      'spec.budgetDuration',
    ]),
  ),
  ...['a', 'team a/key "1"', 'x'.repeat(256), emoji, 'é', '日本語'].map((alias) =>
    accept('VirtualKey', `called ${alias.slice(0, 20)} (${alias.length})`, { 'spec.keyAlias': alias }),
  ),
  ...['', ' ', ' a', 'a ', 'a\u0000b', 'a\nb', 'tab\t', '\u00a0a', 'a\u2003', 'a\u2028b', '\u200b', 'a\u0085b'].map(
    (alias) =>
      refuse('VirtualKey', `called ${JSON.stringify(alias)}`, { 'spec.keyAlias': alias }, [
        'Malformed',
        'spec.keyAlias',
      ]),
  ),
  refuse('VirtualKey', 'with 257 characters of alias', { 'spec.keyAlias': 'x'.repeat(257) }, [
    'TooLarge',
    'spec.keyAlias',
  ]),
  refuse('VirtualKey', 'with 257 emoji of alias', { 'spec.keyAlias': `${emoji}🙂` }, ['TooLarge', 'spec.keyAlias']),
  accept('VirtualKey', 'with an empty list of models', { 'spec.models': [] }),
  accept('VirtualKey', 'with models', { 'spec.models': ['gpt-4o', 'any other name'] }),
  refuse('VirtualKey', 'that names a model twice', { 'spec.models': ['a', 'b', 'a'] }, ['Duplicate', 'spec.models[2]']),
  refuse('VirtualKey', 'with a blank model', { 'spec.models': ['a', ''] }, ['Malformed', 'spec.models[1]']),
  refuse('VirtualKey', 'whose models are no list', { 'spec.models': 'gpt-4o' }, ['WrongType', 'spec.models']),
  refuse('VirtualKey', 'without an instance name', { 'spec.connectionRef.instanceRef.name': '' }, [
    'Malformed',
    'spec.connectionRef.instanceRef.name',
  ]),
  refuse('VirtualKey', 'without an instance namespace', { 'spec.connectionRef.instanceRef.namespace': undefined }, [
    'Required',
    'spec.connectionRef.instanceRef.namespace',
  ]),
  accept('VirtualKey', 'whose softBudget is its maxBudget', { 'spec.softBudget': '10.0' }),
  refuse('VirtualKey', 'whose softBudget is a nano-dollar above maxBudget', { 'spec.softBudget': '10.000000001' }, [
    'SoftBudgetAboveMaxBudget',
    'spec.softBudget',
  ]),
  refuse(
    'VirtualKey',
    'whose softBudget is above by a digit more',
    { 'spec.softBudget': '10', 'spec.maxBudget': '9.5' },
    ['SoftBudgetAboveMaxBudget', 'spec.softBudget'],
  ),
  refuse('VirtualKey', 'whose softBudget is malformed, said once', { 'spec.softBudget': 'lots' }, [
    'Malformed',
    'spec.softBudget',
  ]),
  accept('VirtualKey', 'that rotates', { 'spec.rotation': { every: '30d', overlap: '24h' } }),
  accept('VirtualKey', 'that rotates every few seconds', { 'spec.rotation': { every: '10s', overlap: '3s' } }),
  accept('VirtualKey', 'that leaves the overlap to admission', { 'spec.rotation': { every: '30d' } }),
  refuse('VirtualKey', 'whose overlap is as long as every', { 'spec.rotation': { every: '1d', overlap: '24h' } }, [
    'OverlapTooLong',
    'spec.rotation.overlap',
  ]),
  refuse('VirtualKey', 'whose overlap is longer by its unit', { 'spec.rotation': { every: '20d', overlap: '1mo' } }, [
    'OverlapTooLong',
    'spec.rotation.overlap',
  ]),
  refuse('VirtualKey', 'that rotates never', { 'spec.rotation': {} }, ['Required', 'spec.rotation.every']),
  accept('VirtualKey', 'with every limit', {
    'spec.rpmLimit': 1,
    'spec.tpmLimit': 1_000_000,
    'spec.maxParallelRequests': 10,
  }),
  ...['rpmLimit', 'tpmLimit', 'maxParallelRequests'].map((field) =>
    refuse('VirtualKey', `with ${field} 0`, { [`spec.${field}`]: 0 }, ['TooSmall', `spec.${field}`]),
  ),
  accept('VirtualKey', 'with all the rest', {
    'spec.duration': '90d',
    'spec.blocked': true,
    'spec.modelMaxBudget': { 'gpt 4o/mini': { maxBudget: '1', budgetDuration: '1d' } },
    'spec.budgets': [
      { maxBudget: '5', budgetDuration: '1h' },
      { maxBudget: '20', budgetDuration: '1d' },
    ],
    'spec.userRef': { name: 'ada' },
    'spec.teamRef': { name: 'search' },
    'spec.tags': ['prod', 'chat bot'],
    'spec.metadata': { 'cost center': '42', note: '' },
    'spec.budgetWindow': 'Calendar',
    'spec.budgetTimeZone': 'America/Argentina/Buenos_Aires',
    'spec.deletionPolicy': 'Retain',
    'spec.secretTemplate': {
      name: 'app-credentials',
      labels: { app: 'chat' },
      annotations: { 'example.com/x': 'y' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write in the template
      data: { token: '${key}', OPENAI_API_KEY: '${key}', OPENAI_BASE_URL: '${baseURL}' },
    },
  }),
  refuse(
    'VirtualKey',
    'with two budgets for one window',
    {
      'spec.budgets': [
        { maxBudget: '5', budgetDuration: '1h' },
        { maxBudget: '6', budgetDuration: '1h' },
      ],
    },
    ['Duplicate', 'spec.budgets[1].budgetDuration'],
  ),
  refuse('VirtualKey', 'with a time zone that is none', { 'spec.budgetTimeZone': 'Berlin time' }, [
    'Malformed',
    'spec.budgetTimeZone',
  ]),
  refuse('VirtualKey', 'with a further budget of no window', { 'spec.budgets': [{ maxBudget: '1' }] }, [
    'Required',
    'spec.budgets[0].budgetDuration',
  ]),
  refuse('VirtualKey', 'with a model budget of no window', { 'spec.modelMaxBudget': { a: { maxBudget: '1' } } }, [
    'Required',
    'spec.modelMaxBudget.a.budgetDuration',
  ]),
  refuse('VirtualKey', 'whose template overwrites the Secret key `key`', { 'spec.secretTemplate.data': { key: 'x' } }, [
    'SecretKeyIsTaken',
    'spec.secretTemplate.data',
  ]),
  refuse(
    'VirtualKey',
    'whose template has a key that no Secret can have',
    { 'spec.secretTemplate.data': { 'a b': 'x' } },
    ['EntryName', 'spec.secretTemplate.data'],
  ),
  refuse(
    'VirtualKey',
    'whose template names a Secret that Helm takes for a release',
    { 'spec.secretTemplate.name': 'sh.helm.release.v1.shop.v9' },
    ['HelmReleaseName', 'spec.secretTemplate.name'],
  ),
  refuse('VirtualKey', 'whose template names no possible Secret', { 'spec.secretTemplate.name': 'My_Secret' }, [
    'Malformed',
    'spec.secretTemplate.name',
  ]),
  accept('VirtualKey', 'of which each text has as many characters as it may, together too', LARGEST),
  accept('VirtualKey', 'whose names of budgeted models have as many characters as they may', {
    'spec.modelMaxBudget': LARGEST_BUDGETS,
  }),
  refuse(
    'VirtualKey',
    'whose names of budgeted models have a character more',
    {
      'spec.modelMaxBudget': Object.fromEntries(
        texts(63, 65)
          .concat('xy')
          .map((name) => [name, BUDGET]),
      ),
    },
    ['TooLarge', 'spec.modelMaxBudget'],
  ),
  ...Object.entries(LARGEST).map(([field, texts]) =>
    refuse('VirtualKey', `with a character more in all of ${field}`, { [field]: oneMore(texts) }, ['TooLarge', field]),
  ),
  accept('VirtualKey', 'whose template has 64 marks', {
    'spec.secretTemplate.data': { a: `${MARK.repeat(63)}$`, b: `{${MARK}` },
  }),
  refuse(
    'VirtualKey',
    'whose template has 65 marks',
    { 'spec.secretTemplate.data': { a: MARK.repeat(60), b: MARK.repeat(5) } },
    ['TooManyMarks', 'spec.secretTemplate.data'],
  ),
  refuse('VirtualKey', 'that repeats a tag', { 'spec.tags': ['a', 'a'] }, ['Duplicate', 'spec.tags[1]']),
  refuse('VirtualKey', 'with an unknown window', { 'spec.budgetWindow': 'Monthly' }, [
    'NotInEnum',
    'spec.budgetWindow',
  ]),
  refuse('VirtualKey', 'of a user without a name', { 'spec.userRef': {} }, ['Required', 'spec.userRef.name']),
  accept('VirtualKey', 'whose budget was raised', { 'spec.maxBudget': '20' }, {}),
  {
    ...refuse('VirtualKey', 'whose alias was changed', { 'spec.keyAlias': 'other' }, [
      'KeyAliasIsImmutable',
      'spec.keyAlias',
    ]),
    stored: {},
  },
  {
    ...refuse('VirtualKey', 'that moved to another instance', { 'spec.connectionRef.instanceRef.name': 'other' }, [
      'ConnectionRefIsImmutable',
      'spec.connectionRef',
    ]),
    stored: {},
  },
  {
    ...refuse(
      'VirtualKey',
      'that moved to another namespace',
      { 'spec.connectionRef.instanceRef.namespace': 'other' },
      ['ConnectionRefIsImmutable', 'spec.connectionRef'],
    ),
    stored: {},
  },
];
