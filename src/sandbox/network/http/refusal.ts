/** Why the proxy does not do what something in a sandbox asked for; the message is for whoever asked. */
export class EgressRefusal extends Error {
  /** Of the HTTP answer: 400, 403, 502, 503 or 504. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "EgressRefusal";
    this.status = status;
  }
}
