/** A listing, page by page or item by item: `for await (const profile of client.listProfiles())`. */
export class Pager<Item, Page extends { nextPageToken: string }> implements AsyncIterable<Item> {
  readonly #ask: (pageToken: string) => Promise<Page>;
  readonly #first: string;
  readonly #items: (page: Page) => readonly Item[];

  constructor(ask: (pageToken: string) => Promise<Page>, first: string, items: (page: Page) => readonly Item[]) {
    this.#ask = ask;
    this.#first = first;
    this.#items = items;
  }

  /** The page that was asked for, and no more; its `nextPageToken` asks for the next one. */
  page(): Promise<Page> {
    return this.#ask(this.#first);
  }

  /** All pages from the one that was asked for, each fetched when it is needed. */
  async *pages(): AsyncGenerator<Page> {
    let token = this.#first;
    do {
      const page = await this.#ask(token);
      yield page;
      token = page.nextPageToken;
    } while (token);
  }

  /** All items of all pages. */
  async all(): Promise<Item[]> {
    const found: Item[] = [];
    for await (const item of this) found.push(item);
    return found;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for await (const page of this.pages()) yield* this.#items(page);
  }
}
