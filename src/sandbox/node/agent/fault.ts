/** Why an agent cannot go on with a turn; the message is for the owner of the sandbox. */
export class AgentFault extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AgentFault";
  }
}
