// Markdown of a forge on the site: links between files become links between pages, Mermaid and pictures elements.
import { cpSync, existsSync, globSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MarkdownEnv, MarkdownRenderer } from 'vitepress';
import { PAGES, pagesIn, ROOT, toLink } from './pages.ts';

/** Files that pages link to and that are no pages, such as samples. The site has copies, as text. */
const files = new Set<string>();

/** The plugin of markdown-it. */
export function sitePages(md: MarkdownRenderer): void {
  md.core.ruler.push('site-links', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href !== null) token.attrSet('href', toSiteLink(href, env));
    }
  });
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info !== 'mermaid') return fence?.(tokens, index, ...rest) ?? '';
    return `<Diagram source="${encodeURIComponent(token.content)}" />`;
  };
  // Vue would read {{ }} in code as its own.
  md.renderer.rules.code_inline = (tokens, index) =>
    `<code v-pre>${md.utils.escapeHtml(tokens[index]?.content ?? '')}</code>`;
  md.renderer.rules.html_block = (tokens, index) => toThemedImages(tokens[index]?.content ?? '');
}

/** Files of the built site that are no pages: those that pages link to, and the library of diagrams. */
export function copyFiles(outDir: string): void {
  for (const file of files) cpSync(join(ROOT, file), join(outDir, `source/${file}.txt`));
  const mermaid = dirname(fileURLToPath(import.meta.resolve('mermaid')));
  for (const file of globSync('{mermaid.esm.min.mjs,chunks/mermaid.esm.min/*.mjs}', { cwd: mermaid })) {
    cpSync(join(mermaid, file), join(outDir, 'mermaid', file));
  }
}

function toSiteLink(href: string, { path, realPath }: MarkdownEnv): string {
  if (/^(\w+:|#|\/)/.test(href)) return href;
  const [link = '', anchor] = href.split('#');
  const target = relative(ROOT, join(dirname(realPath ?? path), link));
  const page = PAGES.has(target) ? target : pagesIn(`${target}/`)[0];
  if (page !== undefined) return anchor === undefined ? toLink(page) : `${toLink(page)}#${anchor}`;
  if (!existsSync(join(ROOT, target))) throw new Error(`${path}: nothing is at ${href}`);
  files.add(target);
  return `/source/${target}.txt`;
}

/** The site has a switch for its theme, which `<picture>` does not know: both images, and the theme shows one. */
function toThemedImages(html: string): string {
  return html.replaceAll(
    /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(.*?)">\s*<img src=".*?"(.*?)>\s*<\/picture>/g,
    (picture, dark: string, rest: string) => {
      const light = /<img src="(.*?)"/.exec(picture)?.[1];
      return `<div class="diagram"><img class="in-light" src="./${light}"${rest}><img class="in-dark" src="./${dark}"${rest}></div>`;
    },
  );
}
