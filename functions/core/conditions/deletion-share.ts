// The share of an instance's objects that one run may remove without permission (the deletion guard).

/** Per cent. */
export const DEFAULT_SHARE = 25;

/**
 * The per cent of a text such as `25%`: from 0 (only ten objects, which are always allowed) to 100 (all objects).
 * Undefined: the text is no such share.
 */
export function parseShare(text: string): number | undefined {
  const [, digits] = /^([0-9]{1,3})%$/.exec(text) ?? [];
  const share = digits === undefined ? undefined : Number(digits);
  return share === undefined || share > 100 ? undefined : share;
}
