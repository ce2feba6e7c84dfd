// Addresses of pages of the documentation, for links in errors and alerts.

/** Where the pages of `docs/` are published, without a slash at its end. Absent until there is a site: no link then. */
const SITE: string | undefined = undefined;

/** The address of a page, such as `use/errors`. */
export function pageUrl(page: string, site: string | undefined = SITE): string | undefined {
  return site === undefined ? undefined : `${site}/${page}`;
}
