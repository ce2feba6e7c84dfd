// Anchors of headings, as GitHub makes them: a link works on a forge and on the site.

export const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
