// Pages of the site: which Markdown becomes which page, and the sidebar, from the index of all pages in docs/README.md.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';

export const ROOT = join(import.meta.dirname, '../..');
const INDEX = 'docs/README.md';

/** Files of the repository that are pages, by their paths from its root. */
export const PAGES: ReadonlySet<string> = new Set(['README.md', ...globSync('docs/**/*.md', { cwd: ROOT })]);

/** The path of a page's Markdown in the site. The README comes first, so `docs/README.md` has another name. */
export function toSitePath(page: string): string {
  if (page === 'README.md') return 'index.md';
  return page === INDEX ? 'pages.md' : page.replace(/^docs\//, '');
}

/** A group for each section of the index. A folder becomes a group of its own. */
export function sidebar(): DefaultTheme.SidebarItem[] {
  const sections = read(INDEX).split(/^## /m).slice(1);
  return sections.map((section) => {
    const [text = ''] = section.split('\n');
    const lists = section.match(/^- .*$/gm)?.join('\n') ?? '';
    const links = [...lists.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, link = '']) => link);
    return { text, collapsed: true, items: [...new Set(links)].map(toItem) };
  });
}

function toItem(link: string): DefaultTheme.SidebarItem {
  const path = `docs/${link}`;
  if (PAGES.has(path)) return { text: titleOf(path), link: toLink(path) };
  return { text: 'Decisions', collapsed: true, items: pagesIn(path).map((page) => toItem(page.replace('docs/', ''))) };
}

/** The pages of a folder, in order. */
export const pagesIn = (folder: string) => [...PAGES].filter((page) => page.startsWith(folder)).sort();

/** The address of a page, from the root of the site. */
export const toLink = (page: string) => `/${toSitePath(page).replace(/(^index)?\.md$/, '')}`;

const titleOf = (page: string) => (/^# (.*)$/m.exec(read(page))?.[1] ?? page).replaceAll('`', '');

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');
