/* Browsers start no workers from pages that are opened as files, and the theme's search is one. There it runs in a hidden frame. */
if (location.protocol === "file:")
	window.Worker = class extends EventTarget {
		#frame = document.createElement("iframe");
		#waiting = []; /* messages until the script is there; then null */

		constructor(url) {
			super();
			this.#frame.hidden = true;
			document.body.append(this.#frame);
			const inside = this.#frame.contentWindow;
			inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
			const script = inside.document.createElement("script");
			script.src = new URL(url, document.baseURI);
			script.onload = () => {
				const waiting = this.#waiting;
				this.#waiting = null;
				waiting.forEach((data) => this.postMessage(data));
			};
			inside.document.body.append(script);
		}

		postMessage(data) {
			const inside = this.#frame.contentWindow;
			if (this.#waiting) this.#waiting.push(data);
			else inside.dispatchEvent(new inside.MessageEvent("message", { data }));
		}

		terminate() {
			this.#frame.remove();
		}
	};
