// The built site: every link and picture leads somewhere on it, and no page loads anything from another host.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { describeUnless, whyNotAll } from '../../../test/support/skip-unless.ts';
import { buildSite, fileOf, SITE, whyNoSite } from './built-site.ts';

describeUnless(whyNotAll ?? whyNoSite, 'the site', () => {
  let folder: string;
  const pages = new Map<string, string>();
  beforeAll(() => {
    folder = buildSite();
    for (const page of globSync('**/*.html', { cwd: folder }))
      pages.set(page, readFileSync(join(folder, page), 'utf8'));
  });

  test('has a page for the README and for each page of docs', () => {
    const docs = globSync('docs/**/*.md', { cwd: join(SITE, '../..') });
    // And the page for addresses that do not exist.
    expect(pages.size).toBe(docs.length + 2);
    expect([...pages.keys()]).toEqual(expect.arrayContaining(['index.html', 'use/errors.html', 'operate/alerts.html']));
  });

  test('every link, with its anchor, and every picture lead somewhere', () => {
    const broken = [...pages].flatMap(([page, html]) => {
      const from = new URL(`http://site/${page}`);
      const links = [...html.matchAll(/ (?:href|src)="(?!data:)([^"]*)"/g)].map(([, link = '']) => link);
      return links
        .filter((link) => isBroken(new URL(link.replaceAll('&amp;', '&'), from)))
        .map((link) => `${page}: ${link}`);
    });
    expect(broken).toEqual([]);
  });

  function isBroken({ host, pathname, hash }: URL): boolean {
    if (host !== 'site') return false;
    const file = fileOf(folder, pathname);
    if (file === undefined) return true;
    return hash !== '' && !readFileSync(file, 'utf8').includes(` id="${decodeURIComponent(hash.slice(1))}"`);
  }

  test('scripts, styles, fonts and pictures come from the site itself', () => {
    const foreign = [...pages].flatMap(([page, html]) =>
      [...html.matchAll(/<(?:script|link|img|source|iframe)[^>]* (?:src|srcset|href)="(?:https?:)?\/\/[^"]*"/g)].map(
        ([tag]) => `${page}: ${tag}`,
      ),
    );
    expect(foreign).toEqual([]);
    for (const css of globSync('assets/*.css', { cwd: folder })) {
      expect(readFileSync(join(folder, css), 'utf8')).not.toMatch(/(?:url\(|@import )["']?(?:https?:)?\/\//);
    }
  });

  test('its program has no type errors', () => {
    const tsc = join(SITE, '../../node_modules/.bin/tsc');
    expect(spawnSync(tsc, ['--project', SITE], { encoding: 'utf8' }).stdout).toBe('');
  });
});
