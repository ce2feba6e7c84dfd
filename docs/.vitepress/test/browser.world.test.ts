// The built site in a real browser: both themes, a wide window and a phone.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeUnless, whyNotAll } from '../../../test/support/skip-unless.ts';
import { buildSite, serve, whyNoSite } from './built-site.ts';

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const browserPath = [process.env.CHROMIUM ?? '', ...BROWSERS].find(existsSync);
const whyNoBrowser = browserPath === undefined ? 'needs Chromium or Chrome; CHROMIUM names its file' : undefined;

const PAGES = [
  '/',
  '/pages',
  '/concepts/architecture',
  '/guides/give-developers-claude-code',
  '/reference/fields',
  '/use/errors',
  '/internals/bench',
];
const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const VIEWS = (['light', 'dark'] as const).flatMap((theme) =>
  [WIDE, PHONE].map((viewport) => ({ theme, viewport, name: `${theme}, ${viewport.width} px wide` })),
);

describeUnless(whyNotAll ?? whyNoSite ?? whyNoBrowser, 'the site in a browser', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    site = await serve(buildSite());
    const { chromium } = await import('playwright-core');
    // As root, which CI is, Chromium has no sandbox.
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  test.each(VIEWS)('pages fit, load nothing foreign and report no error: $name', async (view) => {
    const { page, problems } = await open(view);
    for (const path of PAGES) {
      await page.goto(site.url + path, { waitUntil: 'networkidle' });
      await page.waitForFunction(() => document.querySelector('pre.diagram') === null);
      const { scrollWidth, isDark, diagrams, unseen } = await page.evaluate(() => ({
        scrollWidth: document.documentElement.scrollWidth,
        isDark: document.documentElement.classList.contains('dark'),
        diagrams: [...document.querySelectorAll('.diagram:not(:has(img))')].map(
          (one) => one.querySelector('svg[aria-roledescription="sequence"]') !== null,
        ),
        unseen: [...document.images].filter((image) => image.checkVisibility() && image.naturalWidth === 0).length,
      }));
      expect({ path, scrollWidth, isDark, unseen }).toEqual({
        path,
        scrollWidth: view.viewport.width,
        isDark: view.theme === 'dark',
        unseen: 0,
      });
      expect(diagrams).toEqual(path === '/concepts/architecture' ? [true, true, true, true] : []);
      await photograph(page, `${path.replaceAll('/', '_')}-${view.name}`);
    }
    expect(problems).toEqual([]);
    await page.close();
  });

  test.each([WIDE, PHONE])('search finds budgets: $width px wide', async (viewport) => {
    const { page, problems } = await open({ theme: 'light', viewport });
    await page.goto(site.url, { waitUntil: 'networkidle' });
    await page.click('button.DocSearch-Button');
    await page.fill('input.search-input', 'budget');
    const link = page.locator('.VPLocalSearchBox .result', { hasText: 'Set budgets' }).first();
    await link.click();
    await page.waitForURL(/guides\/set-budgets/);
    expect(problems).toEqual([]);
    await page.close();
  });

  /** A new page, and what goes wrong on it: errors, failed requests, and requests to other hosts. */
  async function open({ theme, viewport }: { theme: 'light' | 'dark'; viewport: typeof WIDE }) {
    const page = await browser.newPage({ viewport, colorScheme: theme });
    const problems: string[] = [];
    page.on('console', (message) => void (/error|warning/.test(message.type()) && problems.push(message.text())));
    page.on('pageerror', (error) => void problems.push(String(error)));
    page.on('requestfailed', (request) => void problems.push(`failed: ${request.url()}`));
    page.on(
      'response',
      (response) => void (response.status() >= 400 && problems.push(`${response.status()}: ${response.url()}`)),
    );
    page.on('request', (request) => void (isForeign(request.url()) && problems.push(`foreign: ${request.url()}`)));
    return { page, problems };
  }

  const isForeign = (url: string) => !url.startsWith(site.url) && !url.startsWith('data:');
});

/** Pictures for people who work on the theme, in the folder that SITE_PICTURES names. */
async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env.SITE_PICTURES;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name.replaceAll(/[ ,]+/g, '-')}.png`) });
}
