'use strict';
/*
 * A watch: notices commits of any process that touch a node or what is below it, from its beginning on.
 *
 * `for await (const _ of watch)`, or `await watch.wait()`. Touches between two waits are one. What is reported may be
 * something else near by: compare what you read.
 */
const native = require('../addon');
const {STATUS, PeriluneError, errorOf} = require('../errors');

class Watch {
  #wait;
  #touched = false;
  #error = null;
  #waiters = [];
  #db;

  constructor(db, begin) {
    this.#db = db;
    this.#wait = begin((status, answer) => {
      if (status < 0) this.#error = errorOf(status, answer, 'watch');
      else this.#touched = true;
      this.#settle();
    });
    db.watches.add(this);
  }

  /* Answers those who wait; the first takes the touch. */
  #settle() {
    while (this.#waiters.length > 0 && (this.#touched || this.#error)) {
      const waiter = this.#waiters.shift();
      clearTimeout(waiter.timer);
      if (this.#error) {
        waiter.reject(this.#error);
      } else {
        this.#touched = false;
        waiter.resolve(true);
      }
    }
  }

  /* Resolves to true after a touch, to false after `timeout` seconds; rejects with CLOSED when the watch is closed. */
  wait({timeout = Infinity} = {}) {
    return new Promise((resolve, reject) => {
      const waiter = {resolve, reject, timer: undefined};
      if (timeout !== Infinity) {
        waiter.timer = setTimeout(() => {
          this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
          resolve(false);
        }, timeout * 1000);
      }
      this.#waiters.push(waiter);
      this.#settle();
    });
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) yield await this.wait();
    } catch (error) {
      if (error.status !== STATUS.CLOSED) throw error;
    } finally {
      this.close();
    }
  }

  close() {
    if (!this.#db) return;
    this.#db.watches.delete(this);
    this.#db = null;
    native.cancel(this.#wait);
    this.#error = new PeriluneError(STATUS.CLOSED, 'watch: it was closed');
    this.#settle();
  }
}

module.exports = {Watch};
