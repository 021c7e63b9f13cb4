export const SESSIONS_PATH = "/v1/agent/sessions";

export function sessionPath(id: string): string {
  return `${SESSIONS_PATH}/${encodeURIComponent(id)}`;
}
