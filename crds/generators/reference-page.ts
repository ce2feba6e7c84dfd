// The reference of the fields: docs/reference/fields.md.

import { type Kind, kinds } from '../kinds/kinds.ts';
import { FreeText } from '../kinds/shared-fields.ts';
import { ANNOTATIONS } from '../names/annotations.ts';
import { toManifest } from './crd.ts';
import { type StructuralSchema, toStructural } from './structural-schema.ts';

export interface Field {
  /** `spec.models[].gatewayParams.model`; `[]` is any entry of a list, `{}` any value of a map. */
  readonly path: string;
  readonly schema: StructuralSchema;
  readonly required: boolean;
}

/**
 * Every field below `part`, parents before their children. Items of scalars and values of scalar maps are not fields.
 */
export const fieldsOf = (kind: Kind, part: 'spec' | 'status'): readonly Field[] =>
  schemasOf(kind, part).filter(({ path }) => path !== part && !/[\]}]$/.test(path));

function schemasOf(kind: Kind, part: 'spec' | 'status'): readonly Field[] {
  const [{ schema }] = toManifest(kind).spec.versions;
  return walk({ path: part, schema: schema.openAPIV3Schema.properties[part], required: true });
}

function walk(field: Field): Field[] {
  const { path, schema } = field;
  const { items, additionalProperties, properties = {}, required = [] } = schema;
  const children = Object.entries(properties).map(([name, child]) => ({
    path: `${path}.${name}`,
    schema: child,
    required: required.includes(name),
  }));
  if (items !== undefined) children.push({ path: `${path}[]`, schema: items, required: false });
  if (additionalProperties !== undefined)
    children.push({ path: `${path}{}`, schema: additionalProperties, required: false });
  return [field, ...children.flatMap(walk)];
}

const TEXT = toStructural(FreeText.describe('text'), 'text').pattern;

/** `docs/reference/fields.md`. */
export function toReference(exampleOf: (kind: string) => string): string {
  return `${HEAD}\n${kinds.map((kind) => chapter(kind, exampleOf(kind.kind))).join('\n')}`;
}

const HEAD = `# Fields

Generated from \`crds/*.ts\` by \`npm run generate\`; \`kubectl explain\` shows the same. \`[]\` stands for any element of a list, \`{}\` for any
value of a map.

- A *duration* is a number and a unit: \`s\`, \`m\`, \`h\`, \`d\`, \`w\`, \`mo\`, e.g. \`30d\`; at most 36,525 days. \`mo\` is 30 days, or a calendar month with [\`budgetWindow: Calendar\`](../guides/set-budgets.md#calendar-windows).
- *Dollars* are a quoted decimal string: \`"12"\`, \`"0.5"\`, \`"12.50"\`; at most nine decimals, at most \`"1000000000"\`.
- *Text* has at most 256 characters, no blanks at its ends and no control characters.
`;

/** Fields of a model entry have a section of their own. */
const MODELS = 'spec.models[].';

function chapter(kind: Kind, example: string): string {
  const [ofModels, ofSpec] = [true, false].map((isOfModels) =>
    fieldsOf(kind, 'spec').filter(({ path }) => path.startsWith(MODELS) === isOfModels),
  );
  const names = [kind.plural, kind.singular, ...kind.shortNames].map((name) => `\`${name}\``).join(', ');
  return [
    `## ${kind.kind}`,
    '',
    kind.description,
    '',
    `\`apiVersion: ${kind.apiVersion}\`, \`kind: ${kind.kind}\`. \`kubectl get\` takes ${names}.`,
    ...(kind.nameRule === undefined ? [] : ['', `\`metadata.name\`: ${kind.nameRule.message}.`]),
    '',
    '<!-- tested: samples -->',
    '```yaml',
    example.trim(),
    '```',
    '',
    '### spec',
    '',
    ...table(ofSpec ?? []),
    ...(ofModels?.length ? ['### spec.models', '', ...table(ofModels)] : []),
    ...rules(kind),
    ...annotations(kind),
    '### status',
    '',
    ...table(fieldsOf(kind, 'status')),
  ].join('\n');
}

function table(fields: readonly Field[]): string[] {
  const head = ['| field | type | default | meaning |', '|---|---|---|---|'];
  const rows = fields.map(({ path, schema, required }) => {
    const bounds = boundsOf(schema);
    const type = bounds === '' ? typeOf(schema) : `${typeOf(schema)}, ${bounds}`;
    const name = path.replace(/^(spec|status)\./, '');
    return `| \`${name}\` | ${cell(type)} | ${required ? '*required*' : defaultOf(schema)} | ${cell(schema.description ?? '')} |`;
  });
  return [...head, ...rows, ''];
}

function annotations(kind: Kind): string[] {
  const written = ANNOTATIONS[kind.kind];
  if (written.length === 0) return [];
  const rows = written.map(({ name, value, meaning }) => `| \`${name}\` | ${value} | ${meaning} |`);
  return ['### annotations', '', '| annotation | value | meaning |', '|---|---|---|', ...rows, ''];
}

/** Rules that a schema cannot express, by field. The bounds of durations are at the top of the page. */
function rules(kind: Kind): string[] {
  const found = schemasOf(kind, 'spec').flatMap(({ path, schema }) =>
    (schema['x-kubernetes-validations'] ?? [])
      .filter(({ message }) => !message.includes('36525'))
      .map(({ fieldPath = '', message }) => `- \`${path}${fieldPath}\`: ${message}`),
  );
  return found.length === 0 ? [] : ['Validation rules:', '', ...found, ''];
}

function typeOf(schema: StructuralSchema): string {
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties !== undefined) return `map to ${typeOf(schema.additionalProperties)}`;
  if (schema.enum !== undefined) return schema.enum.map((one) => `\`${one}\``).join(', ');
  if (schema.format === 'date-time') return 'date';
  if (schema.pattern?.includes('mo)')) return 'duration';
  if (schema.pattern?.includes('1000000000')) return 'dollars';
  return schema.pattern === TEXT ? 'text' : schema.type;
}

function boundsOf(schema: StructuralSchema): string {
  if (schema.items !== undefined) return `at most ${schema.maxItems}`;
  if (schema.additionalProperties !== undefined) return `at most ${schema.maxProperties}`;
  if (schema.type === 'integer')
    return schema.maximum === undefined ? `from ${schema.minimum}` : `${schema.minimum} to ${schema.maximum}`;
  if (typeOf(schema) === 'string') return `at most ${schema.maxLength} characters`;
  return '';
}

const defaultOf = (schema: StructuralSchema): string =>
  schema.default === undefined || typeof schema.default === 'object' ? '' : `\`${String(schema.default)}\``;

const cell = (text: string): string => text.replaceAll('|', '\\|');
