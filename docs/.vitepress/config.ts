// The site: VitePress shows README.md as its first page, and docs/ below it. Nothing is loaded from another host.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vitepress';
import { toAnchor } from './anchor.ts';
import { copyFiles, sitePages } from './links.ts';
import { ROOT, sidebar, toSitePath } from './pages.ts';

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3451b2"/><path d="M8 16h12m-5-6 6 6-6 6M25 8v16" fill="none" stroke="#fff" stroke-width="3"/></svg>';

export default defineConfig({
  title: 'Gateway Operator',
  description: 'Budgeted API keys for language models, handed out with kubectl.',
  lang: 'en',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  srcDir: ROOT,
  srcExclude: ['{crds,dist,functions,infra,test}/**', ...globSync('*.md', { cwd: ROOT, exclude: ['README.md'] })],
  outDir: process.env.SITE_OUT ?? join(ROOT, 'dist/site'),
  cacheDir: join(import.meta.dirname, 'node_modules/.cache/vitepress'),
  // The addresses that errors and alerts link to: `use/errors`, not `docs/use/errors.html`.
  cleanUrls: true,
  rewrites: toSitePath,
  markdown: { anchor: { slugify: toAnchor }, config: sitePages },
  buildEnd: ({ outDir }) => copyFiles(outDir),
  themeConfig: {
    nav: [
      { text: 'Install', link: '/install/quickstart' },
      { text: 'Errors', link: '/use/errors' },
      { text: 'All pages', link: '/pages' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  vite: { plugins: [vueOfPages()], build: { chunkSizeWarningLimit: 2000 } },
});

/** Pages import Vue as if it were installed beside them. It is installed here, where the built pages run too. */
function vueOfPages(): Plugin {
  return {
    name: 'vue-of-pages',
    enforce: 'pre',
    resolveId(id, _importer, { ssr, ...options }) {
      if (!/^vue(\/|$)/.test(id)) return null;
      return ssr ? { id, external: true } : this.resolve(id, import.meta.filename, { ...options, skipSelf: true });
    },
  };
}
