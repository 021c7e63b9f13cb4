/** How a KQL query wants its rows drawn, as it travels beside them; the rows are the same with it and without. */
export const RENDER_HEADER = "X-Engine-Render";

const MAX_BYTES = 4 * 1024;

/** JSON, percent-encoded. Properties of more than fit are left out: the kind alone is what a client can do without them. */
export function renderHeader({ kind, properties }: { kind: string; properties: Record<string, unknown> }): string {
  const whole = encodeURIComponent(JSON.stringify({ kind, properties }));
  return whole.length <= MAX_BYTES ? whole : encodeURIComponent(JSON.stringify({ kind, properties: {} }));
}
