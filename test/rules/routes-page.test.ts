// docs/reference/routes.md: every route of the gateway, and a reply of GET key as the gateway sends it.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseMoney } from '#core/money/money.ts';
import { createRoutes } from '../../functions/gateway/app.ts';
import { KEY, keyRecord, scope } from '../gateway/instance.ts';
import { stage } from '../gateway/stage.ts';
import { NOW } from '../gateway/time.ts';
import { documented } from '../platforms/documented.ts';

const PAGE = 'docs/reference/routes.md';

test('the page has every route', () => {
  const page = readFileSync(PAGE, 'utf8');
  const routes = [...createRoutes(stage().deps)].filter(([path]) => !path.startsWith('/v1/'));
  const named = routes.map(([path, { method }]) => `\`${method} ${path.slice(1).replace(/\/$/, '/MODEL')}\``);
  expect(named).toContain('`GET key`');
  expect(named.filter((route) => !page.includes(route))).toEqual([]);
});

test('the reply of GET key is what the gateway sends', async () => {
  const shown = JSON.parse(documented(PAGE, 'key report', 'json'));
  const budgetOf = (limit: string, duration: string, alignment: 'Calendar' | 'Rolling') => ({
    budget: { limit: String(parseMoney(limit)), duration, alignment },
  });
  const user = scope('user', { name: 'grace@example.com', alias: 'grace' });
  const team = scope('team', { name: 'web', anchor: NOW - 86_400_000, ...budgetOf('1000', '30d', 'Rolling') });
  const key = { name: 'claude-grace', models: shown.models, ...budgetOf('50', '1mo', 'Calendar') };
  const { get, ledger } = stage({ keys: { [KEY]: keyRecord(key, [user, team]) } });
  ledger.spendNow('key-scope', '12.5');
  ledger.spendNow('team-scope', '400.25');
  expect(await (await get('/key')).json()).toEqual(shown);
});
