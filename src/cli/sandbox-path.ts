export const SANDBOXES = "/api/v1/sandboxes";

export function sandboxPath(id: string): string {
  return `${SANDBOXES}/${encodeURIComponent(id)}`;
}
