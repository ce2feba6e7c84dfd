// What does the list of fields without effect say?
import { notYetActedOn } from './acted-on.ts';
import { fieldsOf } from './fields.ts';
import { type KindName, kinds } from './kinds.ts';

/** `docs/not-yet-acted-on.md`. Throws on an entry that is no field, so the list cannot go stale. */
export function toNotYetActedOn(): string {
  const rows = kinds.flatMap(({ kind }) => notYetActedOn[kind].map((entry) => row(kind, entry)));
  if (rows.length === 0)
    return `${HEAD}\n**There is none at present:** every field of every kind does what its description says.\n`;
  return `${HEAD}\n| kind | field | meaning, once it is acted on |\n|---|---|---|\n${rows.join('\n')}\n`;
}

const HEAD = `# Accepted, not yet acted on

Generated from \`crds/acted-on.ts\` by \`npm run generate\`. Fields that stand here are checked and stored, and do nothing yet. A test holds this list
against the code: a field of a spec is either read by the functions or stands here.
`;

function row(name: KindName, entry: string): string {
  const [path = '', value] = entry.split('=');
  const kind = kinds.find((one) => one.kind === name);
  const field = kind && fieldsOf(kind, 'spec').find((one) => one.path === `spec.${path}`);
  if (field === undefined) throw new Error(`crds/acted-on.ts: ${name} has no field spec.${path}`);
  if (value !== undefined && !field.schema.enum?.includes(value))
    throw new Error(`crds/acted-on.ts: ${path} is never ${value}`);
  const written = value === undefined ? `spec.${path}` : `spec.${path}: ${value}`;
  return `| ${name} | \`${written}\` | ${(field.schema.description ?? '').replaceAll('|', '\\|')} |`;
}
