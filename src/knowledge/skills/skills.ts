export class Skills {
  enabled(): Promise<{ name: string; description: string }[]> {
    return Promise.resolve([]);
  }
}
