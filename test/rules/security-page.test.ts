// docs/concepts/security.md: the rights of the service accounts are those of access.yaml.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { accessRules } from '../support/access-rules.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/concepts/security.md'), 'utf8');
const ACCOUNTS = { admission: 'admission webhook', reconcile: 'reconciler' } as const;

function rowsOf(account: keyof typeof ACCOUNTS): ReadonlyArray<string> {
  return accessRules(account).map(({ apiGroups: [group], resources, resourceNames, verbs }) => {
    const named = resourceNames === undefined ? '' : ` named ${resourceNames.join(', ')}`;
    return `| ${ACCOUNTS[account]} | ${group || 'core'} | ${resources.join(', ')}${named} | ${verbs.join(', ')} |`;
  });
}

test('its table has the rights of both service accounts, and no others', () => {
  const [, table] = /<!-- rights -->\n(.*?)<!-- end of rights -->/s.exec(page) ?? [];
  const head = ['| service account | API group | resources | verbs |', '|---|---|---|---|'];
  expect(table).toBe(`${[...head, ...rowsOf('admission'), ...rowsOf('reconcile')].join('\n')}\n`);
});
