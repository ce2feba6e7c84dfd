// Do two entries of an instance share one credential Secret? (SPEC 2.2, rule 2)
import { SHARED_CREDENTIALS_ALLOWED, SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import type { Finding } from '../finding.ts';

interface Entry {
  readonly identifier?: string | undefined;
  readonly modelCredentials?: { readonly nameRef?: string | undefined } | undefined;
}

/**
 * `allowed` is what the annotation says that lets them. Of those that share, all but the first are named; the first is
 * whoever had the Secret `before`, else whoever stands first. So an edit is told of the entry that it changed, and an
 * old mistake stays the same mistake when the list is reordered.
 */
export function sharedCredentials(
  models: ReadonlyArray<Entry>,
  allowed: string | undefined,
  before: ReadonlyArray<Entry> = [],
): Finding[] {
  if (allowed === SHARED_CREDENTIALS_ALLOWED) return [];
  const uses = usesOf(models);
  if (new Set(uses.map(({ secret }) => secret)).size === uses.length) return [];
  const places = new Map(usesOf(before).map((use) => [useName(use), use.index]));
  const place = (use: Use) => places.get(useName(use)) ?? before.length + use.index;
  const first = new Map<string, string>();
  const findings = uses
    .sort((left, right) => place(left) - place(right))
    .flatMap(({ identifier, index, secret }): Array<Finding & { index: number }> => {
      const owner = first.get(secret);
      if (owner === undefined) {
        first.set(secret, identifier);
        return [];
      }
      const message =
        `is the Secret of entry ${JSON.stringify(owner)} already; give each entry a Secret of its own, or allow sharing ` +
        `with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "${SHARED_CREDENTIALS_ALLOWED}"`;
      const path = `spec.models[${index}].modelCredentials.nameRef`;
      return [{ index, rule: 'SharedCredentials', path, value: secret, message, effect: 'refuse' }];
    });
  return findings.sort((left, right) => left.index - right.index).map(({ index: _index, ...finding }) => finding);
}

interface Use {
  readonly identifier: string;
  readonly index: number;
  readonly secret: string;
}

const usesOf = (models: ReadonlyArray<Entry>): Use[] =>
  models.flatMap(({ identifier = '', modelCredentials }, index) =>
    modelCredentials?.nameRef === undefined ? [] : [{ identifier, index, secret: modelCredentials.nameRef }],
  );

const useName = ({ identifier, secret }: Use): string => JSON.stringify([identifier, secret]);
