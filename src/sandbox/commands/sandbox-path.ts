export const SANDBOXES = "/api/v1/sandboxes";

export function sessionPath(id: string): string {
  return `/api/v1/sessions/${encodeURIComponent(id)}`;
}

export function sandboxPath(id: string): string {
  return `${SANDBOXES}/${encodeURIComponent(id)}`;
}
